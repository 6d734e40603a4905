package servicecatalog

import (
	"crypto/sha256"
	"encoding/hex"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/apiserver"
)

// labeled returns a resource whose objects are labeled with the values of their fields.
func labeled[T apiserver.Object](resource apiserver.Resource[T]) apiserver.Resource[T] {
	setDefaults := resource.Default
	resource.Default = func(object T) {
		if setDefaults != nil {
			setDefaults(object)
		}
		labelFields(object, resource.Fields)
	}
	return resource
}

// labelFields sets the labels that service catalog 0.3 clients use to select an object:
// servicecatalog.k8s.io/FIELD, with the field's SHA-224 hash as the value. Earlier clients use
// field selectors for the same fields.
func labelFields[T metav1.Object](object T, fields map[string]func(T) string) {
	labels := object.GetLabels()
	for name, value := range fields {
		key, text := v1beta1.GroupVersion().Group+"/"+name, value(object)
		if text == "" {
			delete(labels, key)
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		hash := sha256.Sum224([]byte(text))
		labels[key] = hex.EncodeToString(hash[:])
	}
	object.SetLabels(labels)
}
