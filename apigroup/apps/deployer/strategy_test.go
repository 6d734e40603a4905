package deployer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

func hook(policy appsv1.LifecycleHookFailurePolicy) *appsv1.LifecycleHook {
	return &appsv1.LifecycleHook{FailurePolicy: policy, ExecNewPod: &appsv1.ExecNewPodHook{ContainerName: "main", Command: []string{"true"}}}
}

// recreate returns a Recreate strategy with all hooks.
func recreate(policy appsv1.LifecycleHookFailurePolicy) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{Type: appsv1.DeploymentStrategyTypeRecreate, RecreateParams: &appsv1.RecreateDeploymentStrategyParams{
		Pre: hook(policy), Mid: hook(policy), Post: hook(policy),
	}}
}

// rolling returns a Rolling strategy with all hooks.
func rolling(policy appsv1.LifecycleHookFailurePolicy) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{Type: appsv1.DeploymentStrategyTypeRolling, RollingParams: &appsv1.RollingDeploymentStrategyParams{
		UpdatePeriodSeconds: ptr.To[int64](0), Pre: hook(policy), Post: hook(policy),
	}}
}

// recreated returns all actions of a Recreate deployment: the new pods start after the old pods
// have been deleted.
func recreated() []string {
	return []string{"pre hook", "web-1 0", "mid hook", "web-2 1", "web-2 2", "post hook"}
}

func TestRecreateStopsOldPodsBeforeNewOnesStart(t *testing.T) {
	t.Parallel()
	s := newSite(t, recreate(appsv1.LifecycleHookFailurePolicyAbort))
	if err := s.deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.journal, recreated()) {
		t.Errorf("done: %q", s.journal)
	}
	if !strings.HasSuffix(s.out.String(), "--> Success\n") {
		t.Errorf("the log is:\n%s", s.out.String())
	}
}

func TestFailurePolicyOfHook(t *testing.T) {
	t.Parallel()
	const abort, ignore, again = appsv1.LifecycleHookFailurePolicyAbort, appsv1.LifecycleHookFailurePolicyIgnore, appsv1.LifecycleHookFailurePolicyRetry
	for _, stage := range []string{"pre", "mid", "post"} {
		for _, policy := range []appsv1.LifecycleHookFailurePolicy{abort, ignore, again} {
			s := newSite(t, recreate(policy))
			s.hooks[stage] = corev1.PodFailed
			err := s.deploy(t.Context())
			want := recreated()
			// With the Retry policy, the deployment fails only when its timeout expires.
			if policy != ignore {
				want = want[:slices.Index(want, stage+" hook")+1]
			}
			if (err == nil) != (policy == ignore) || !slices.Equal(s.journal, want) {
				t.Errorf("%s, %s: %v, done: %q, want %q", stage, policy, err, s.journal, want)
			}
			if err != nil && !strings.Contains(err.Error(), `run hook "`+stage+`"`) {
				t.Errorf("%s, %s: %v", stage, policy, err)
			}
		}
	}
}

func TestHookPodRestartsOnlyWithRetry(t *testing.T) {
	t.Parallel()
	for policy, want := range map[appsv1.LifecycleHookFailurePolicy]corev1.RestartPolicy{
		appsv1.LifecycleHookFailurePolicyAbort: "Never", appsv1.LifecycleHookFailurePolicyIgnore: "Never", appsv1.LifecycleHookFailurePolicyRetry: "OnFailure",
	} {
		s := newSite(t, rolling(policy))
		if err := s.deploy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if first, last := s.journal[0], s.journal[len(s.journal)-1]; first != "pre hook" || last != "post hook" {
			t.Errorf("%s: done: %q", policy, s.journal)
		}
		for _, name := range []string{"web-2-hook-pre", "web-2-hook-post"} {
			pod, err := s.client.CoreV1().Pods("shop").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || pod.Spec.RestartPolicy != want || pod.Spec.Containers[0].Image != "web:1" {
				t.Errorf("%s: %s is %+v, %v", policy, name, pod, err)
			}
		}
	}
}

func TestHookWithPodIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := newSite(t, recreate(appsv1.LifecycleHookFailurePolicyAbort))
	for range 2 { // the second deployer continues after the first has finished
		if err := s.deploy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pods, err := s.client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{LabelSelector: rollout.PodTypeLabel})
	if err != nil || len(pods.Items) != 3 {
		t.Errorf("%d hook pods exist, %v", len(pods.Items), err)
	}
}

func TestCustomStrategyWithDefaultImageUsesParameters(t *testing.T) {
	t.Parallel()
	custom := recreate(appsv1.LifecycleHookFailurePolicyAbort)
	custom.Type, custom.CustomParams = appsv1.DeploymentStrategyTypeCustom, &appsv1.CustomDeploymentStrategyParams{}
	s := newSite(t, custom)
	if err := s.deploy(t.Context()); err != nil || !slices.Equal(s.journal, recreated()) {
		t.Errorf("%v, done: %q", err, s.journal)
	}
}

func TestDeploymentWithoutProgressTimesOut(t *testing.T) {
	t.Parallel()
	const abort = appsv1.LifecycleHookFailurePolicyAbort
	recreate, rolling := recreate(abort), rolling(abort)
	recreate.RecreateParams.TimeoutSeconds, rolling.RollingParams.TimeoutSeconds = ptr.To[int64](5), ptr.To[int64](5)
	for name, tt := range map[string]struct {
		strategy      appsv1.DeploymentStrategy
		stuck, broken bool
		last          string
	}{
		"old pods do not end":              {recreate, true, false, "web-1 0"},
		"new pods are not ready":           {recreate, false, true, "web-2 1"},
		"new pods are not ready (rolling)": {rolling, false, true, "web-2 1 with 2 old pods"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, tt.strategy)
			s.stuck, s.broken = tt.stuck, tt.broken
			err := s.deploy(t.Context())
			if !errors.Is(err, errTimeout) || len(s.journal) == 0 || s.journal[len(s.journal)-1] != tt.last {
				t.Errorf("%v, done: %q", err, s.journal)
			}
		})
	}
}

func TestStoppedDeploymentMakesNoMoreChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t, recreate(appsv1.LifecycleHookFailurePolicyIgnore))
	ctx, stop := context.WithCancel(t.Context())
	s.hooks["mid"], s.onHook = corev1.PodRunning, func(name string) {
		if name == "mid" {
			stop()
		}
	}
	if err := s.deploy(ctx); err == nil {
		t.Error("it succeeded")
	}
	if want := []string{"pre hook", "web-1 0", "mid hook"}; !slices.Equal(s.journal, want) {
		t.Errorf("done: %q, want %q", s.journal, want)
	}
}
