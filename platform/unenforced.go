package platform

import (
	"context"
	"fmt"

	networkv1 "github.com/openshift/api/network/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// unenforcedResources are the resources that the API server stores and that nothing enforces yet. A line that is removed ends the
// warnings about its resource, those of requests and that of `slipway status`.
func unenforcedResources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		networkingv1.SchemeGroupVersion.WithResource("networkpolicies"),
		networkv1.GroupVersion.WithResource("egressnetworkpolicies"),
	}
}

// unenforcedNotes says which of those resources have objects, which somebody may rely on.
func unenforcedNotes(ctx context.Context, config *rest.Config) (notes []string) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	for _, resource := range unenforcedResources() {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil || len(list.Items) == 0 { // an API server that does not answer is the parts' affair
			continue
		}
		first := list.Items[0]
		notes = append(notes, fmt.Sprintf("%s are stored but not enforced yet, for instance %q of project %q: they keep no traffic out; see: slipway oc get %s --all-namespaces",
			resource.Resource, first.Name, first.Namespace, resource.GroupResource()))
	}
	return notes
}
