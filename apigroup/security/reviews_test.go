package security

import (
	"slices"
	"strings"
	"testing"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestReviewStatusIsLimited checks reviews of many service accounts. The status contains a template
// for each service account.
func TestReviewStatusIsLimited(t *testing.T) {
	const mebibyte = 1 << 20
	for name, tt := range map[string]struct {
		accounts, bytes int
		ok              bool
	}{
		"one account":                          {1, 100, true},
		"no account":                           {0, 3 * mebibyte, true},
		"one account, large template":          {1, 3 * mebibyte, true},
		"many accounts":                        {500, 100, true},
		"too many accounts":                    {1100, 100, false},
		"several accounts, large template":     {2, 3 * mebibyte, false},
		"many accounts, template of 100 KB":    {100, 100_000, false},
		"several accounts, template of 100 KB": {20, 100_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := securityv1.PodSecurityPolicyReviewSpec{ServiceAccountNames: slices.Repeat([]string{"default"}, tt.accounts)}
			spec.Template.Spec.Containers = []corev1.Container{{Args: []string{strings.Repeat("x", tt.bytes)}}}
			err := checkSize(spec)
			if (err == nil) != tt.ok || err != nil && !apierrors.IsBadRequest(err) {
				t.Errorf("error %v, want success: %t", err, tt.ok)
			}
		})
	}
}
