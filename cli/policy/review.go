package policy

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// sendReview sends a review. request must include the API version and kind. sendReview decodes the
// server's response into response, which must be a pointer. namespace is empty for a cluster-scoped
// review.
func sendReview(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace string, request, response any) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request)
	if err != nil {
		return fmt.Errorf("write %s: %w", resource.Resource, err)
	}
	delete(content, "status")
	created, err := client.Resource(resource).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(created.Object, response); err != nil {
		return fmt.Errorf("read %s: %w", resource.Resource, err)
	}
	return nil
}
