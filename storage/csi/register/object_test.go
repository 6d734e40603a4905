package register

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/driver"
)

func TestObjectFollowsCapabilities(t *testing.T) {
	description := &driver.Description{Controller: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_GET_CAPACITY}}
	yes, no := true, false
	policy := storagev1.FileFSGroupPolicy
	desired := Spec(description, storagev1.CSIDriverSpec{FSGroupPolicy: &policy})
	if *desired.AttachRequired || !*desired.StorageCapacity || *desired.FSGroupPolicy != policy {
		t.Errorf("the object has %+v", desired)
	}
	if configured := Spec(description, storagev1.CSIDriverSpec{StorageCapacity: &no}); *configured.StorageCapacity {
		t.Error("the configuration does not override")
	}

	labels := map[string]string{managedBy: manager}
	tests := []struct {
		name     string
		existing *storagev1.CSIDriver
		want     bool // true if the object then has the desired spec
		same     bool // true if the object was not recreated
	}{
		{"none", nil, true, false},
		{"managed, other values", object(labels, storagev1.CSIDriverSpec{AttachRequired: &no, StorageCapacity: &no}), true, true},
		{"managed, another value of an immutable field", object(labels, storagev1.CSIDriverSpec{AttachRequired: &yes}), true, false},
		{"not managed", object(nil, storagev1.CSIDriverSpec{AttachRequired: &yes}), false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client := fake.NewClientset()
			if tt.existing != nil {
				client = fake.NewClientset(tt.existing)
			}
			drivers := client.StorageV1().CSIDrivers()
			o := &Object{Drivers: drivers, Driver: "a.example.com", Spec: desired}
			if err := o.ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			after, err := drivers.Get(t.Context(), "a.example.com", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := !differs(desired, after.Spec); got != tt.want {
				t.Errorf("desired spec: %t, want %t: %+v", got, tt.want, after.Spec)
			}
			if got := after.UID == "old"; got != tt.same {
				t.Errorf("the same object: %t, want %t", got, tt.same)
			}
		})
	}
}

func object(labels map[string]string, spec storagev1.CSIDriverSpec) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "a.example.com", UID: "old", Labels: labels}, Spec: spec}
}

func TestObjectIsRetried(t *testing.T) {
	client := fake.NewClientset()
	var request atomic.Int32
	client.PrependReactor("create", "csidrivers", func(clienttesting.Action) (bool, runtime.Object, error) {
		if request.Add(1) == 1 {
			return true, nil, errors.New("the API server does not respond")
		}
		return false, nil, nil
	})
	o := &Object{Drivers: client.StorageV1().CSIDrivers(), Driver: "a.example.com"}
	componenttest.Run(t, o.Run)
	eventually.True(t, "the object exists", func() bool {
		_, err := client.StorageV1().CSIDrivers().Get(t.Context(), "a.example.com", metav1.GetOptions{})
		return err == nil
	})
}
