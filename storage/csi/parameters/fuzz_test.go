package parameters

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzTemplate checks that a secret name expanded from a class's template is valid for all claims.
func FuzzTemplate(f *testing.F) {
	for _, seed := range [][2]string{{"${pvc.name}", "data"}, {"a-${pvc.annotations['x']}", "../b"}, {"${", ""}, {"$pvc.name", "A"}, {"${${pvc.name}}", "pvc.name"}, {"x", "y"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, template, value string) {
		name, err := expand("csi.storage.k8s.io/provisioner-secret-name", template, map[string]string{"pvc.name": value, "pvc.annotations['x']": value}, validation.IsDNS1123Subdomain)
		if err == nil && len(validation.IsDNS1123Subdomain(name)) > 0 {
			t.Errorf("%q with %q: got %q", template, value, name)
		}
	})
}
