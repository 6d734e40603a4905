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

// BundleMap is the name of the ConfigMap that contains the service CA bundle in each namespace.
// BundleKey is the key in the ConfigMap and the file name in pods.
const (
	BundleMap = "openshift-service-ca.crt"
	BundleKey = "service-ca.crt"
)

// injectBundle is the annotation, without its prefix, that requests the CA bundle if its value is
// "true".
const injectBundle = "inject-cabundle"

// target is a resource whose objects can request the CA bundle, as resource.version.group.
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

// inject returns a reconcile function for a resource. The function writes the CA bundle to an
// object if the object requests it.
func (c *Certificates) inject(tgt target) func(context.Context, controller.Key) error {
	return func(ctx context.Context, key controller.Key) error {
		cached, exists, err := c.injected[tgt].GetStore().GetByKey(key.String())
		if err != nil || !exists || !wantsBundle(cached.(metav1.Object)) {
			return err
		}
		bundle, err := c.bundle()
		if err != nil {
			return err
		}
		objects := c.dynamic.Resource(tgt.resource()).Namespace(key.Namespace)
		object, err := objects.Get(ctx, key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", tgt, err)
		}
		if annotation(object.GetAnnotations(), injectBundle) != "true" || object.GetDeletionTimestamp() != nil || !injectBundleInto(object, bundle) {
			return controller.RequeueAfter(recheckInterval)
		}
		_, err = objects.Update(ctx, object, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // the object's change enqueues its key again
		}
		// Treat an invalid update like a success: the object cannot be updated, for example because
		// it is immutable or because it disables TLS verification.
		if err == nil || apierrors.IsInvalid(err) {
			return controller.RequeueAfter(recheckInterval)
		}
		return fmt.Errorf("write %s: %w", tgt, err)
	}
}

func (c *Certificates) bundle() (string, error) {
	bundle, err := os.ReadFile(c.BundleFile)
	if err != nil {
		return "", fmt.Errorf("read service CA bundle: %w", err)
	}
	return string(bundle), nil
}

// injectBundleInto sets the CA bundle in the fields that depend on the object's kind. It returns
// false if nothing has changed.
func injectBundleInto(object *unstructured.Unstructured, bundle string) (changed bool) {
	encoded := base64.StdEncoding.EncodeToString([]byte(bundle))
	switch object.GetKind() {
	case "ConfigMap":
		return setString(object.Object, bundle, "data", BundleKey)
	case "APIService":
		return setString(object.Object, encoded, "spec", "caBundle")
	case "CustomResourceDefinition":
		_, exists, err := unstructured.NestedMap(object.Object, "spec", "conversion", "webhook", "clientConfig")
		return err == nil && exists && setString(object.Object, encoded, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	}
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return false
	}
	for _, webhook := range webhooks {
		if fields, ok := webhook.(map[string]any); ok && setString(fields, encoded, "clientConfig", "caBundle") {
			changed = true
		}
	}
	return changed && unstructured.SetNestedSlice(object.Object, webhooks, "webhooks") == nil
}

func setString(object map[string]any, value string, path ...string) (changed bool) {
	present, _, err := unstructured.NestedString(object, path...)
	return err == nil && present != value && unstructured.SetNestedField(object, value, path...) == nil
}

// ensureBundleMap creates a namespace's ConfigMap, with the annotation that requests the CA bundle.
func (c *Certificates) ensureBundleMap(ctx context.Context, key controller.Key) error {
	object, exists, err := c.namespaces.GetStore().GetByKey(key.Namespace)
	if err != nil || !exists || object.(*corev1.Namespace).DeletionTimestamp != nil {
		return err
	}
	cached, exists, err := c.injected[configMaps].GetStore().GetByKey(key.String())
	if err != nil || exists && wantsBundle(cached.(metav1.Object)) {
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
		return nil // the project is being deleted
	case apierrors.IsConflict(err): // the ConfigMap or a quota has changed
		return controller.RequeueAfter(time.Second)
	}
	return err
}
