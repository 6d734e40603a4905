package bootstrap

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/bootstrap/samples"
)

// sampleObjects returns the initial image streams and templates of the project openshift. Each is
// created only if it does not exist. Later changes by an administrator are kept.
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
