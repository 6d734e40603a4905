package servicecatalog

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// TestBrokersOfDeletedProjectAreKept checks what the namespace controller can delete.
func TestBrokersOfDeletedProjectAreKept(t *testing.T) {
	namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, age := range map[string]time.Duration{"shop": time.Minute, "old": time.Hour} {
		deleted := metav1.NewTime(time.Now().Add(-age))
		if err := namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, DeletionTimestamp: &deleted}}); err != nil {
			t.Fatal(err)
		}
	}
	local, global := v1beta1.PlanReference{ServiceClassExternalName: "db"}, v1beta1.PlanReference{ClusterServiceClassExternalName: "db"}
	secrets, brokers := corev1.SchemeGroupVersion.WithResource("secrets"), v1beta1.GroupVersion().WithResource("servicebrokers")
	classes, instances := v1beta1.GroupVersion().WithResource("serviceclasses"), v1beta1.GroupVersion().WithResource("serviceinstances")
	tests := map[string]struct {
		resource            schema.GroupVersionResource
		name, project, user string
		plan                v1beta1.PlanReference
		kept                bool
	}{
		"credentials":                 {secrets, "credentials", "shop", namespaceController, local, true},
		"other secret":                {secrets, "other", "shop", namespaceController, local, false},
		"broker":                      {brokers, "broker", "shop", namespaceController, local, true},
		"class":                       {classes, "db", "shop", namespaceController, local, true},
		"instance":                    {instances, "db", "shop", namespaceController, local, false},
		"instances of other brokers":  {secrets, "credentials", "shop", namespaceController, global, false},
		"deleted by a user":           {secrets, "credentials", "shop", "alice", local, false},
		"broker that does not answer": {brokers, "broker", "old", namespaceController, local, false},
		"project in an old cache":     {brokers, "broker", "new", namespaceController, local, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := v1beta1.ServiceBroker{ObjectMeta: metav1.ObjectMeta{Namespace: tt.project, Name: "broker"}}
			broker.Spec.AuthInfo = &v1beta1.ServiceBrokerAuthInfo{Basic: &v1beta1.AuthConfig{SecretRef: &v1beta1.LocalObjectReference{Name: "credentials"}}}
			instance := v1beta1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: tt.project, Name: "db"}, Spec: v1beta1.ServiceInstanceSpec{PlanReference: tt.plan}}
			plugin := newDeletionOrder(func(_ context.Context, resource, namespace string) (runtime.Object, error) {
				if namespace != tt.project {
					t.Errorf("%s of project %q are read", resource, namespace)
				}
				if resource == "servicebrokers" {
					return &v1beta1.ServiceBrokerList{Items: []v1beta1.ServiceBroker{broker}}, nil
				}
				return &v1beta1.ServiceInstanceList{Items: []v1beta1.ServiceInstance{instance}}, nil
			})
			plugin.namespaces = corelisters.NewNamespaceLister(namespaces)
			// The namespace controller deletes collections, whose requests have no name.
			object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: tt.name}}
			attributes := admission.NewAttributesRecord(nil, object, schema.GroupVersionKind{}, tt.project, "", tt.resource, "", admission.Delete, nil, false,
				&user.DefaultInfo{Name: tt.user})
			if err := plugin.Validate(t.Context(), attributes, nil); (err != nil) != tt.kept {
				t.Errorf("error %v, want an error: %t", err, tt.kept)
			}
		})
	}
}
