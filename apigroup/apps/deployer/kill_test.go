package deployer

import (
	"context"
	"slices"
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// deployKilled deploys with a deployer that is killed after a number of requests, and says whether it was.
func (s *site) deployKilled(t *testing.T, after int64) bool {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	s.kill = kill
	s.left.Store(after)
	err := s.deploy(ctx)
	s.left.Store(-1)
	if killed := ctx.Err() != nil; killed != (err != nil) {
		t.Errorf("after %d requests: killed %t, but %v", after, killed, err)
	}
	return ctx.Err() != nil
}

// TestADeployerThatIsKilledAnywhereIsDoneByTheNext kills deployers before each of their requests. The next one does what is left, and
// nothing twice.
func TestADeployerThatIsKilledAnywhereIsDoneByTheNext(t *testing.T) {
	t.Parallel()
	const abort = appsv1.LifecycleHookFailurePolicyAbort
	for name, strategy := range map[string]appsv1.DeploymentStrategy{"Recreate": recreate(abort), "Rolling": rolling(abort)} {
		whole := newSite(t, strategy)
		if err := whole.deploy(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := int64(0)
			for ; ; after++ {
				s := newSite(t, strategy)
				killed := s.deployKilled(t, after)
				if err := s.deploy(t.Context()); err != nil {
					t.Errorf("killed after %d requests: the next deployer: %v", after, err)
				}
				if !slices.Equal(s.journal, whole.journal) {
					t.Errorf("killed after %d requests: done: %q, want %q", after, s.journal, whole.journal)
				}
				if to := s.deployment(t, "web-2"); rollout.Phase(to) != appsv1.DeploymentStatusComplete || *to.Spec.Replicas != 2 {
					t.Errorf("killed after %d requests: the deployment is %+v", after, to)
				}
				if !killed {
					break
				}
			}
			if after < 10 {
				t.Errorf("a whole deployment has %d requests", after)
			}
		})
	}
}

func TestADeploymentThatIsCancelledAtTheLastMomentIsNotComplete(t *testing.T) {
	t.Parallel()
	s := newSite(t, recreate(appsv1.LifecycleHookFailurePolicyAbort))
	s.onHook = func(name string) {
		if name == "post" {
			s.annotate(t, "web-2", appsv1.DeploymentCancelledAnnotation, "true")
		}
	}
	if err := s.deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if to := s.deployment(t, "web-2"); rollout.Phase(to) != appsv1.DeploymentStatusNew {
		t.Errorf("it is %s", rollout.Phase(to))
	}
}
