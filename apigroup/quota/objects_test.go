package quota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/restmapper"
)

// newListedObjects returns an objects value for a cluster with a pod and a secret in the project
// "shop".
func newListedObjects(t *testing.T) *objects {
	t.Helper()
	client := fake.NewClientset()
	client.Resources = []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "pods", Namespaced: true, Kind: "Pod"}, {Name: "secrets", Namespaced: true, Kind: "Secret"},
	}}}
	names := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(names); err != nil {
		t.Fatal(err)
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	return &objects{
		mapper:  restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
		dynamic: dynamicfake.NewSimpleDynamicClient(scheme.Scheme, &corev1.Pod{ObjectMeta: meta("web"), Spec: corev1.PodSpec{NodeName: "one"}}),
		names: metadatafake.NewSimpleMetadataClient(names, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta("token"),
		}),
	}
}

func TestOnlyCountableObjectsAreListedInFull(t *testing.T) {
	o := newListedObjects(t)
	for name, tt := range map[string]struct {
		resource  schema.GroupResource
		namespace string
		want      int
		full      func(runtime.Object) bool
	}{
		"pods with their requests":     {corev1.Resource("pods"), "shop", 1, func(o runtime.Object) bool { pod, ok := o.(*corev1.Pod); return ok && pod.Spec.NodeName == "one" }},
		"names of secrets":             {corev1.Resource("secrets"), "shop", 1, func(o runtime.Object) bool { _, ok := o.(*metav1.PartialObjectMetadata); return ok }},
		"secrets of another project":   {corev1.Resource("secrets"), "bank", 0, nil},
		"pods of another project":      {corev1.Resource("pods"), "bank", 0, nil},
		"resource that nothing serves": {schema.GroupResource{Group: "example.com", Resource: "widgets"}, "shop", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := o.list(t.Context(), tt.resource, tt.namespace)
			if err != nil || len(list) != tt.want {
				t.Fatalf("got %d objects, %v, want %d", len(list), err, tt.want)
			}
			for _, object := range list {
				if !tt.full(object) {
					t.Errorf("got a %T", object)
				}
			}
		})
	}
}
