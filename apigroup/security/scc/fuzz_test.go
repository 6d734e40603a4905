package scc

import (
	"testing"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzAllocation checks that the IDs parsed from a namespace's annotations are in order, and that
// invalid text never results in root.
func FuzzAllocation(f *testing.F) {
	for _, seed := range [][3]string{
		{"1000000000/10000", "1000000000/10000", "s0:c1,c0"}, {"1-5", "5-1", ""}, {"4294967295/4294967295", "0/1,2/3", "x"}, {"-1/5", "/", "/"}, {"1/0", "1-", "-1"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, users, groups, level string) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{
			securityv1.UIDRangeAnnotation: users, securityv1.SupplementalGroupsAnnotation: groups, securityv1.MCSAnnotation: level,
		}}}
		constraint := &Constraints{
			RunAsUser:          securityv1.RunAsUserStrategyOptions{Type: securityv1.RunAsUserStrategyMustRunAsRange},
			SELinuxContext:     securityv1.SELinuxContextStrategyOptions{Type: securityv1.SELinuxStrategyMustRunAs},
			FSGroup:            securityv1.FSGroupStrategyOptions{Type: securityv1.FSGroupStrategyMustRunAs},
			SupplementalGroups: securityv1.SupplementalGroupsStrategyOptions{Type: securityv1.SupplementalGroupsStrategyMustRunAs},
		}
		r, err := resolve(constraint, namespace)
		if err != nil {
			return
		}
		ranges := append([]securityv1.IDRange{{Min: *r.runAsUser.UIDRangeMin, Max: *r.runAsUser.UIDRangeMax}}, r.fsGroup...)
		for _, ids := range append(ranges, r.supplementalGroups...) {
			if ids.Min < 0 || ids.Max < ids.Min {
				t.Errorf("%q and %q give %+v", users, groups, ids)
			}
		}
	})
}
