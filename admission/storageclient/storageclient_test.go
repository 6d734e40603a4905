package storageclient

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

const group, driver = "system:slipway-storages", "local.csi.slipway.io"

func volume(source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}}
}

func csiVolume(name string, secret *corev1.SecretReference) *corev1.PersistentVolume {
	return volume(corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: name, NodePublishSecretRef: secret}})
}

func content(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"driver": name}}}
}

func csiDriver(name string) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func attributes(who, resource string, operation admission.Operation, old, object runtime.Object) admission.Attributes {
	return admission.NewAttributesRecord(object, old, schema.GroupVersionKind{}, "shop", "name",
		schema.GroupVersionResource{Resource: resource}, "", operation, nil, false, &user.DefaultInfo{Name: "client", Groups: []string{who}})
}

func TestClientCanOnlyHaveCapacitiesInItsNamespace(t *testing.T) {
	limits := Limits{Group: group, Driver: driver, CapacityNamespace: "shop"}
	err := newPlugin(limits).Validate(t.Context(), attributes(group, "csistoragecapacities", admission.Create, nil, &storagev1.CSIStorageCapacity{}), nil)
	expect(t, err, "")
}

// expect fails the test unless err contains want. If want is empty, err must be nil.
func expect(t *testing.T, err error, want string) {
	t.Helper()
	if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestClientIsLimitedToItsDriver(t *testing.T) {
	local := volume(corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/var/lib/slipway/pki"}})
	host := volume(corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}})
	secret := &corev1.SecretReference{Namespace: "shop", Name: "private"}
	for name, tt := range map[string]struct {
		resource string
		old, new runtime.Object
		want     string
	}{
		"volume of the driver":                        {"persistentvolumes", nil, csiVolume(driver, nil), ""},
		"local volume":                                {"persistentvolumes", nil, local, "only use volumes of the CSI driver"},
		"host path":                                   {"persistentvolumes", nil, host, "only use volumes of the CSI driver"},
		"volume of another driver":                    {"persistentvolumes", nil, csiVolume("nfs.example.com", nil), "spec.csi.driver"},
		"volume with a secret":                        {"persistentvolumes", nil, csiVolume(driver, secret), "spec.csi.nodePublishSecretRef"},
		"change of another volume":                    {"persistentvolumes", local, csiVolume(driver, nil), "only use volumes of the CSI driver"},
		"deletion of another driver's volume":         {"persistentvolumes", csiVolume("nfs.example.com", nil), nil, "spec.csi.driver"},
		"deletion of a volume of the driver":          {"persistentvolumes", csiVolume(driver, nil), nil, ""},
		"its driver":                                  {"csidrivers", nil, csiDriver(driver), ""},
		"another driver":                              {"csidrivers", nil, csiDriver("nfs.example.com"), "metadata.name"},
		"content of its driver":                       {"volumesnapshotcontents", nil, content(driver), ""},
		"content of another driver":                   {"volumesnapshotcontents", nil, content("nfs.example.com"), "spec.driver"},
		"deletion of another content":                 {"volumesnapshotcontents", content("nfs.example.com"), nil, "spec.driver"},
		"event":                                       {"events", nil, &corev1.Event{}, ""},
		"capacity in another namespace":               {"csistoragecapacities", nil, &storagev1.CSIStorageCapacity{}, "only manage CSIStorageCapacities in namespace"},
		"deletion of a capacity in another namespace": {"csistoragecapacities", &storagev1.CSIStorageCapacity{}, nil, "only manage CSIStorageCapacities in namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admission.Update
			switch {
			case tt.old == nil:
				operation = admission.Create
			case tt.new == nil:
				operation = admission.Delete
			}
			for _, user := range []string{group, "system:masters"} {
				want := tt.want
				if user != group {
					want = ""
				}
				err := newPlugin(Limits{Group: group, Driver: driver}).Validate(t.Context(), attributes(user, tt.resource, operation, tt.old, tt.new), nil)
				expect(t, err, want)
			}
		})
	}
}
