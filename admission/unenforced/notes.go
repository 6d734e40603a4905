package unenforced

import (
	"context"
	"fmt"

	networkv1 "github.com/openshift/api/network/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Resources returns the resources that the API server stores and that nothing enforces yet.
// Removing a line ends all warnings about its resource: the warnings of requests and the notes of
// `slipway status`.
func Resources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		networkv1.GroupVersion.WithResource("egressnetworkpolicies"),
	}
}

// Notes returns a text for each of these resources that has objects, which users might rely on. It
// skips resources that cannot be listed.
func Notes(ctx context.Context, config *rest.Config) (notes []string) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	for _, resource := range Resources() {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil || len(list.Items) == 0 {
			continue
		}
		first := list.Items[0]
		notes = append(notes, fmt.Sprintf("%s are stored but not enforced yet, for instance %q of project %q: they keep no traffic out; "+
			"see: slipway oc get %s --all-namespaces", resource.Resource, first.Name, first.Namespace, resource.GroupResource()))
	}
	return notes
}
