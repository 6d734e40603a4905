package broker

import (
	"errors"
	"slices"
	"testing"

	templatev1 "github.com/openshift/api/template/v1"
	templatefake "github.com/openshift/client-go/template/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

// recordWith returns the record of instance `one` in the `shop` project.
func recordWith(uid types.UID, bindings ...string) *templatev1.BrokerTemplateInstance {
	at := corev1.ObjectReference{Namespace: "shop", Name: "one"}
	return &templatev1.BrokerTemplateInstance{
		ObjectMeta: metav1.ObjectMeta{Name: "one", UID: uid},
		Spec:       templatev1.BrokerTemplateInstanceSpec{TemplateInstance: at, Secret: at, BindingIDs: bindings},
	}
}

func TestBindRetriesConflictingRecordUpdates(t *testing.T) {
	err := errors.New("the connection is lost")
	for name, tt := range map[string]struct {
		unread error
		want   []string
	}{
		"the record is read again":        {nil, []string{"others", "mine"}},
		"the record cannot be read again": {err, []string{"others"}},
	} {
		client := templatefake.NewClientset(recordWith("1", "others"))
		conflicts := 1
		client.PrependReactor("update", "brokertemplateinstances", func(clienttesting.Action) (bool, runtime.Object, error) {
			conflicts--
			return conflicts >= 0, nil, apierrors.NewConflict(templatev1.Resource("brokertemplateinstances"), "one", nil)
		})
		unread := tt.unread
		client.PrependReactor("get", "brokertemplateinstances", func(clienttesting.Action) (bool, runtime.Object, error) {
			return unread != nil, nil, unread
		})
		b := &broker{client: client}
		err := b.change(t.Context(), recordWith("1"), func(spec *templatev1.BrokerTemplateInstanceSpec) bool {
			if slices.Contains(spec.BindingIDs, "mine") {
				return false
			}
			spec.BindingIDs = append(spec.BindingIDs, "mine")
			return true
		})
		if !errors.Is(err, tt.unread) {
			t.Errorf("%s: %v, want %v", name, err, tt.unread)
		}
		unread = nil
		record, err := client.TemplateV1().BrokerTemplateInstances().Get(t.Context(), "one", metav1.GetOptions{})
		if err != nil || !slices.Equal(record.Spec.BindingIDs, tt.want) {
			t.Errorf("%s: bindings %v (%v), want %v", name, record.Spec.BindingIDs, err, tt.want)
		}
	}
}

func TestProvisionRejectsOrphansOfEarlierInstance(t *testing.T) {
	client := templatefake.NewClientset()
	a := &actor{kube: kubefake.NewClientset(), templates: client}
	for uid, want := range map[types.UID]int{"1": 0, "2": 422} {
		// The first instance's Secret and TemplateInstance still exist when the second instance is
		// created.
		if _, err := a.values(t.Context(), recordWith("1"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := a.instance(t.Context(), recordWith("1"), &templatev1.Template{}); err != nil {
			t.Fatal(err)
		}
		_, ofSecret := a.values(t.Context(), recordWith(uid), nil)
		_, ofInstance := a.instance(t.Context(), recordWith(uid), &templatev1.Template{})
		for _, err := range []error{ofSecret, ofInstance} {
			code := 0
			if err != nil {
				code, _ = osbserver.Code(err)
			}
			if code != want {
				t.Errorf("record %q: %v, want %d", uid, err, want)
			}
		}
	}
}
