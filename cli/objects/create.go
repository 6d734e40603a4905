package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"
)

// Plain converts a typed object to an unstructured object. It removes the status and the creation
// timestamps.
func Plain(object runtime.Object) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write object: %w", err)
	}
	result := &unstructured.Unstructured{}
	if err := result.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("write object: %w", err)
	}
	delete(result.Object, "status")
	unstructured.RemoveNestedField(result.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(result.Object, "spec", "template", "metadata", "creationTimestamp")
	return result, nil
}

// CreateObject creates an object. If a namespaced object specifies no namespace, CreateObject
// creates it in namespace. It returns a description such as `service "web"`. A dry run returns the
// same description without creating the object.
func CreateObject(ctx context.Context, factory util.Factory, namespace string, object *unstructured.Unstructured, dryRun bool) (string, error) {
	kind := object.GroupVersionKind()
	name := strings.ToLower(kind.Kind)
	if kind.Group != "" {
		name += "." + kind.Group
	}
	name = fmt.Sprintf("%s %q", name, object.GetName())
	client, mapping, err := ResourceOf(factory, object)
	if err != nil || dryRun {
		return name, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	} else if existing := object.GetNamespace(); existing != "" {
		namespace = existing
	}
	_, err = client.Resource(mapping.Resource).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
	return name, err
}

// ResourceOf returns a client, and the mapping from an object's kind to its resource.
func ResourceOf(factory util.Factory, object *unstructured.Unstructured) (dynamic.Interface, *meta.RESTMapping, error) {
	mapper, err := factory.ToRESTMapper()
	if err != nil {
		return nil, nil, err
	}
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, nil, err
	}
	client, err := factory.DynamicClient()
	return client, mapping, err
}
