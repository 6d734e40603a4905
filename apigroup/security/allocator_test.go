package security

import (
	"testing"

	securityv1 "github.com/openshift/api/security/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestAllocatorIsReadyWhenAllNamespacesHaveRanges(t *testing.T) {
	client := fake.NewClientset(namespaceWith("a", nil), namespaceWith("b", nil), namespaceWith("taken", map[string]string{
		securityv1.UIDRangeAnnotation: "100/10",
	}))
	deps := &controller.Deps{Kube: client}
	deps.Init()
	componenttest.Run(t, deps.Run)
	componenttest.Run(t, (&Allocator{Deps: deps, UIDRange: "100-139/10", MCSRange: "s0:/2", LabelsPerProject: 5}).Run)
	ranges := func(name string) string {
		t.Helper()
		namespace, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return namespace.Annotations[securityv1.UIDRangeAnnotation]
	}
	names := map[string]string{}
	for _, name := range []string{"a", "b", "taken"} {
		if other := names[ranges(name)]; ranges(name) == "" || other != "" {
			t.Errorf("namespace %s has the range %q of %q", name, ranges(name), other)
		}
		names[ranges(name)] = name
	}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespaceWith("c", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a new namespace has a range", func() bool { return ranges("c") != "" })
	if other := names[ranges("c")]; other != "" {
		t.Errorf("namespace c has the same range as %s", other)
	}
}
