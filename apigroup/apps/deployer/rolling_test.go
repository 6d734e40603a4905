package deployer

import (
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

func params(surge, unavailable string) *appsv1.RollingDeploymentStrategyParams {
	return &appsv1.RollingDeploymentStrategyParams{MaxSurge: ptr.To(intstr.Parse(surge)), MaxUnavailable: ptr.To(intstr.Parse(unavailable))}
}

// TestRollingDeploymentStaysWithinLimits simulates deployments in which some old pods never become
// available.
func TestRollingDeploymentStaysWithinLimits(t *testing.T) {
	for desired := int32(0); desired <= 6; desired++ {
		for original := int32(0); original <= 8; original++ {
			for broken := int32(0); broken <= original; broken++ {
				for _, shares := range [][2]string{{"25%", "25%"}, {"1", "0"}, {"0", "1"}, {"100%", "100%"}, {"3", "2"}} {
					l, err := rollout.RollingLimits(desired, params(shares[0], shares[1]))
					if err != nil {
						t.Fatal(err)
					}
					play(t, limits{l}, original, broken)
				}
			}
		}
	}
}

// play simulates a deployment in which one new pod becomes available after each step. Unavailable
// old pods are removed first.
func play(t *testing.T, l limits, original, broken int32) {
	t.Helper()
	served := min(original-broken, l.Minimum())
	old, new := count{original, original - broken, true}, count{0, 0, true}
	for range 100 {
		if l.done(old, new) {
			return
		}
		oldWanted, newWanted := l.next(old, new)
		if newWanted < new.desired || oldWanted > old.desired || newWanted > l.Desired {
			t.Fatalf("%+v: from %+v, %+v to %d, %d", l, old, new, oldWanted, newWanted)
		}
		if total := oldWanted + newWanted; newWanted > new.desired && total > l.Desired+l.Surge && old.desired+newWanted > l.Desired+l.Surge {
			t.Fatalf("%+v: %d pods at the same time", l, total)
		}
		old.available = min(old.available, oldWanted)
		old.desired, new.desired = oldWanted, newWanted
		if old.available+new.available < served {
			t.Fatalf("%+v: %d pods serve, %d did before", l, old.available+new.available, served)
		}
		new.available = min(new.desired, new.available+1)
	}
	t.Fatalf("%+v with %d old pods, %d of them broken, does not end: %+v, %+v", l, original, broken, old, new)
}
