package endpoints

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/componenttest"
	rules "github.com/slipway-platform/slipway/internal/endpoints"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// head returns the metadata of an Endpoints object or EndpointSlice.
func head(version, kind, name string, labels map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: labels},
	}
}

// stored returns the metadata of the Endpoints object and the EndpointSlice of a service.
func stored(service, controller, sliceController string) []runtime.Object {
	return []runtime.Object{
		head("v1", "Endpoints", service, map[string]string{rules.ManagedBy: controller}),
		head("discovery.k8s.io/v1", "EndpointSlice", service, map[string]string{
			discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: sliceController,
		}),
	}
}

func TestOrphanedEndpointsAreDeleted(t *testing.T) {
	service := func(name string, spec corev1.ServiceSpec) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec}
	}
	selector := map[string]string{"app": "web"}
	kube := fake.NewClientset(
		service("web", corev1.ServiceSpec{Selector: selector}), service("later", corev1.ServiceSpec{Selector: selector}), service("plain", corev1.ServiceSpec{}),
		service("outside", corev1.ServiceSpec{Selector: selector, Type: corev1.ServiceTypeExternalName}), service("user", corev1.ServiceSpec{}),
	)
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := stored("user", "", "endpointslicemirroring-controller.k8s.io")
	for _, name := range []string{"web", "later", "plain", "outside", "deleted"} {
		objects = append(objects, stored(name, rules.Controller, rules.SliceController)...)
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, objects...)
	deps := &controller.Deps{Kube: kube, Metadata: client}
	deps.Init()
	componenttest.Run(t, deps.Run)
	componenttest.Run(t, (&Orphans{Deps: deps}).Run)
	remaining := func() string {
		names := map[string]int{}
		for _, kind := range kinds {
			list, err := client.Resource(kind.resource).Namespace("shop").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range list.Items {
				names[item.Name]++
			}
		}
		for name, count := range names {
			if count != len(kinds) {
				return name + " has only one of its objects"
			}
		}
		return strings.Join(slices.Sorted(maps.Keys(names)), " ")
	}
	eventually.True(t, "orphaned endpoints are deleted", func() bool { return remaining() == "later user web" })
	if _, err := kube.CoreV1().Services("shop").Update(t.Context(), service("later", corev1.ServiceSpec{}), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the endpoints of a service that loses its selector are deleted", func() bool { return remaining() == "user web" })
}
