package deployer

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// deployKilled runs a deployer that is killed after a number of requests. It returns false if the
// deployer finishes before it is killed.
func (s *site) deployKilled(t *testing.T, after int64) bool {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	s.kill = kill
	s.failures.Store(after)
	err := s.deploy(ctx)
	s.failures.Store(-1)
	if killed := ctx.Err() != nil; killed != (err != nil) {
		t.Errorf("after %d requests: killed %t, but %v", after, killed, err)
	}
	return ctx.Err() != nil
}

// TestKilledDeployerIsContinuedByNext kills a deployer before each of its requests in turn. The
// next deployer completes the remaining steps and does not repeat a step.
func TestKilledDeployerIsContinuedByNext(t *testing.T) {
	t.Parallel()
	const abort = appsv1.LifecycleHookFailurePolicyAbort
	for name, strategy := range map[string]appsv1.DeploymentStrategy{"Recreate": recreate(abort), "Rolling": rolling(abort)} {
		site := newSite(t, strategy)
		if err := site.deploy(t.Context()); err != nil {
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
				if !slices.Equal(s.journal, site.journal) {
					t.Errorf("killed after %d requests: done: %q, want %q", after, s.journal, site.journal)
				}
				if to := s.deployment(t, "web-2"); rollout.Phase(to) != appsv1.DeploymentStatusComplete || *to.Spec.Replicas != 2 {
					t.Errorf("killed after %d requests: the deployment is %+v", after, to)
				}
				if !killed {
					break
				}
			}
			if after < 10 {
				t.Errorf("a complete deployment sends %d requests", after)
			}
		})
	}
}

// TestFailedDeployerMarksDeploymentAsFailed kills a failing deployer before each of its requests in
// turn. The deployment fails once, and is not started again.
func TestFailedDeployerMarksDeploymentAsFailed(t *testing.T) {
	t.Parallel()
	for after := int64(0); ; after++ {
		s := newSite(t, recreate(appsv1.LifecycleHookFailurePolicyAbort))
		s.hooks["mid"] = corev1.PodFailed
		ctx, kill := context.WithCancel(t.Context())
		s.kill = kill
		s.failures.Store(after)
		first := s.deploy(ctx)
		killed := ctx.Err() != nil
		kill()
		s.failures.Store(-1)
		next := s.deploy(t.Context())
		if first == nil || next == nil {
			t.Errorf("killed after %d requests: %v, and the next deployer: %v", after, first, next)
		}
		if want := []string{"pre hook", "web-1 0", "mid hook"}; !slices.Equal(s.journal, want) {
			t.Errorf("killed after %d requests: done: %q, want %q", after, s.journal, want)
		}
		if to := s.deployment(t, "web-2"); rollout.Phase(to) != appsv1.DeploymentStatusFailed || to.Annotations[rollout.DesiredAnnotation] != "2" {
			t.Errorf("killed after %d requests: the deployment is %+v", after, to)
		}
		if !killed {
			return
		}
	}
}

func TestDeployerDoesNotCompleteCanceledDeployment(t *testing.T) {
	t.Parallel()
	for _, end := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		s := newSite(t, recreate(appsv1.LifecycleHookFailurePolicyAbort))
		s.hooks["post"], s.onHook = end, func(name string) {
			if name == "post" {
				s.annotate(t, "web-2", appsv1.DeploymentCancelledAnnotation, "true")
			}
		}
		if err := s.deploy(t.Context()); (err == nil) != (end == corev1.PodSucceeded) {
			t.Errorf("the last hook in phase %s: %v", end, err)
		}
		if to := s.deployment(t, "web-2"); rollout.Phase(to) != appsv1.DeploymentStatusNew {
			t.Errorf("the last hook in phase %s: the deployment is %s", end, rollout.Phase(to))
		}
	}
}

func TestDeployerDoesNotChangeEndedDeployment(t *testing.T) {
	t.Parallel()
	for _, end := range []appsv1.DeploymentStatus{appsv1.DeploymentStatusComplete, appsv1.DeploymentStatusFailed} {
		s := newSite(t, recreate(appsv1.LifecycleHookFailurePolicyAbort))
		s.onHook = func(name string) {
			if name == "mid" {
				s.annotate(t, "web-2", appsv1.DeploymentStatusAnnotation, string(end))
			}
		}
		if err := s.deploy(t.Context()); err == nil || !strings.Contains(err.Error(), "was ended by another client") {
			t.Errorf("%s: %v", end, err)
		}
		if to := s.deployment(t, "web-2"); rollout.Phase(to) != end {
			t.Errorf("the deployment changed from %s to %s", end, rollout.Phase(to))
		}
	}
}
