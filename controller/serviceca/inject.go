package serviceca

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/controller"
)

// BundleMap is the ConfigMap of each namespace with the authority of services' certificates, and BundleKey its key, which is also the
// name of the file in pods.
const (
	BundleMap = "openshift-service-ca.crt"
	BundleKey = "service-ca.crt"
)

// injectBundle is the annotation, without prefix, that asks for the authority with the value true.
const injectBundle = "inject-cabundle"

// target is a resource whose objects may ask for the authority, as resource.version.group.
type target string

const configMaps target = "configmaps.v1."

func targets() []target {
	return []target{
		configMaps, "apiservices.v1.apiregistration.k8s.io", "customresourcedefinitions.v1.apiextensions.k8s.io",
		"mutatingwebhookconfigurations.v1.admissionregistration.k8s.io", "validatingwebhookconfigurations.v1.admissionregistration.k8s.io",
	}
}

func (t target) resource() schema.GroupVersionResource {
	resource, _ := schema.ParseResourceArg(string(t))
	return *resource
}

// injector brings the authority into objects of a resource that ask for it.
func (c *Certificates) injector(to target) func(context.Context, controller.Key) error {
	return func(ctx context.Context, key controller.Key) error {
		cached, there, err := c.injected[to].GetStore().GetByKey(key.String())
		if err != nil || !there || !wants(cached.(*metav1.PartialObjectMetadata)) {
			return err
		}
		bundle, err := c.bundle()
		if err != nil {
			return err
		}
		objects := c.dynamic.Resource(to.resource()).Namespace(key.Namespace)
		object, err := objects.Get(ctx, key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", to, err)
		}
		if annotation(object.GetAnnotations(), injectBundle) != "true" || object.GetDeletionTimestamp() != nil || !put(object, bundle) {
			return controller.After(lookAgain)
		}
		_, err = objects.Update(ctx, object, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // its change brings it again
		}
		if err == nil || apierrors.IsInvalid(err) { // such as one that may not be changed, or that wants no verification
			return controller.After(lookAgain)
		}
		return fmt.Errorf("write %s: %w", to, err)
	}
}

func (c *Certificates) bundle() (string, error) {
	bundle, err := os.ReadFile(c.BundleFile)
	if err != nil {
		return "", fmt.Errorf("read authorities of services: %w", err)
	}
	return string(bundle), nil
}

// put writes the authority where an object of its kind has it; false says that nothing was to do.
func put(object *unstructured.Unstructured, bundle string) (changed bool) {
	encoded := base64.StdEncoding.EncodeToString([]byte(bundle))
	switch object.GetKind() {
	case "ConfigMap":
		return set(object.Object, bundle, "data", BundleKey)
	case "APIService":
		return set(object.Object, encoded, "spec", "caBundle")
	case "CustomResourceDefinition":
		_, there, err := unstructured.NestedMap(object.Object, "spec", "conversion", "webhook", "clientConfig")
		return err == nil && there && set(object.Object, encoded, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	}
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return false
	}
	for _, webhook := range webhooks {
		if fields, ok := webhook.(map[string]any); ok && set(fields, encoded, "clientConfig", "caBundle") {
			changed = true
		}
	}
	return changed && unstructured.SetNestedSlice(object.Object, webhooks, "webhooks") == nil
}

func set(object map[string]any, value string, path ...string) (changed bool) {
	present, _, err := unstructured.NestedString(object, path...)
	return err == nil && present != value && unstructured.SetNestedField(object, value, path...) == nil
}

// publish keeps the ConfigMap of a namespace. The authority is brought into it as into any other that asks for it.
func (c *Certificates) publish(ctx context.Context, key controller.Key) error {
	object, there, err := c.namespaces.GetStore().GetByKey(key.Namespace)
	if err != nil || !there || object.(*metav1.PartialObjectMetadata).DeletionTimestamp != nil {
		return err
	}
	cached, there, err := c.injected[configMaps].GetStore().GetByKey(key.String())
	if err != nil || there && wants(cached.(*metav1.PartialObjectMetadata)) {
		return err
	}
	bundle, err := c.bundle()
	if err != nil {
		return err
	}
	asks := map[string]string{prefixes()[1] + injectBundle: "true"}
	maps := c.client.CoreV1().ConfigMaps(key.Namespace)
	_, err = maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: key.Name, Annotations: asks}, Data: map[string]string{BundleKey: bundle},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var present *corev1.ConfigMap
		if present, err = maps.Get(ctx, key.Name, metav1.GetOptions{}); err == nil && annotation(present.Annotations, injectBundle) != "true" {
			if present.Annotations == nil {
				present.Annotations = map[string]string{}
			}
			present.Annotations[prefixes()[1]+injectBundle] = "true"
			delete(present.Annotations, prefixes()[0]+injectBundle)
			_, err = maps.Update(ctx, present, metav1.UpdateOptions{})
		}
	}
	switch {
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the project goes
	case apierrors.IsConflict(err): // about the map, or about a quota
		return controller.After(time.Second)
	}
	return err
}
