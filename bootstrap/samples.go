package bootstrap

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/bootstrap/samples"
)

// sampleObjects returns the initial image streams and templates in the openshift project. An object
// is created if it does not exist, but never updated, so administrators' changes are kept.
func sampleObjects() (all []*unstructured.Unstructured, err error) {
	manifests, err := samples.Manifests()
	if err != nil {
		return nil, err
	}
	for _, manifest := range manifests {
		objects, err := decode([]byte(manifest.Text))
		if err != nil {
			return nil, fmt.Errorf("decode sample %q: %w", manifest.Name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}
