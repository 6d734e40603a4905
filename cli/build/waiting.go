package build

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// How often a build that has not begun is looked at, after how long it is told what it waits for,
// and how often that is told again.
const lookPeriod, quiet, repeat = 500 * time.Millisecond, 3 * time.Second, 15 * time.Second

// teller tells what a build waits for, and how long it has: not at once, when it changes, and now
// and then.
type teller struct {
	out   io.Writer
	clock clock.PassiveClock

	began, last time.Time
	said        string
}

func newTeller(out io.Writer, clock clock.PassiveClock) *teller {
	return &teller{out: out, clock: clock, began: clock.Now()}
}

// tell tells it.
func (t *teller) tell(build, reason string) {
	now := t.clock.Now()
	waited := now.Sub(t.began)
	if waited < quiet || reason == t.said && now.Sub(t.last) < repeat {
		return
	}
	t.said, t.last = reason, now
	fmt.Fprintf(t.out, "Waiting for build %q (%s): %s\n", build, waited.Truncate(time.Second), reason)
}

// Begin waits until a build runs or has run, and writes what it waits for meanwhile.
func (c *Client) Begin(ctx context.Context, name string, out io.Writer) error {
	return c.watch(ctx, newTeller(out, c.clock), func() (*buildv1.Build, error) {
		return c.Builds(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// watch looks at a build until it has begun. There may be none yet.
func (c *Client) watch(ctx context.Context, t *teller, find func() (*buildv1.Build, error)) error {
	tick := time.NewTicker(lookPeriod)
	defer tick.Stop()
	for {
		build, err := find()
		switch {
		case err != nil:
			return fmt.Errorf("wait for the build to begin: %w", err)
		case build == nil:
		case build.Status.Phase == buildv1.BuildPhaseRunning || instantiate.Ended(build):
			return nil
		default:
			t.tell(build.Name, c.reason(ctx, build))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// reason is why a build has not begun, as far as the user may know it.
func (c *Client) reason(ctx context.Context, build *buildv1.Build) string {
	switch {
	case build.Status.Reason != "":
		return fmt.Sprintf("%s (%s)", build.Status.Message, build.Status.Reason)
	case build.Status.Phase == buildv1.BuildPhaseNew:
		return c.turn(ctx, build)
	}
	pod, err := c.pods.Pods(c.Namespace).Get(ctx, instantiate.PodName(build.Name), metav1.GetOptions{})
	if err != nil {
		return "its pod is " + strings.ToLower(string(build.Status.Phase))
	}
	return podReason(pod)
}

// turn names the builds that one has to wait for.
func (c *Client) turn(ctx context.Context, build *buildv1.Build) string {
	others, _ := c.Of(ctx, instantiate.ConfigOf(build)) // none, if they cannot be seen
	var before []string
	for i := range others {
		if other := &others[i]; other.Name != build.Name && !instantiate.Ended(other) && instantiate.Number(other) < instantiate.Number(build) {
			before = append(before, other.Name)
		}
	}
	if len(before) == 0 || instantiate.Policy(build) == buildv1.BuildRunPolicyParallel {
		return "it has no pod yet"
	}
	return fmt.Sprintf("by the run policy %s it begins after %s", instantiate.Policy(build), strings.Join(before, ", "))
}

// podReason is why a pod does not run.
func podReason(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("no node takes its pod %s: %s", pod.Name, condition.Message)
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "" {
			if waiting.Message == "" {
				return fmt.Sprintf("its pod %s is %s", pod.Name, waiting.Reason)
			}
			return fmt.Sprintf("its pod %s is %s: %s", pod.Name, waiting.Reason, waiting.Message)
		}
	}
	return fmt.Sprintf("its pod %s starts", pod.Name)
}

// started finds the build of a configuration that is made after the one of a number; nil while
// there is none.
func (c *Client) started(ctx context.Context, config string, after int64) func() (*buildv1.Build, error) {
	return func() (*buildv1.Build, error) {
		builds, err := c.Of(ctx, config)
		if err != nil || len(builds) == 0 || instantiate.Number(&builds[0]) <= after {
			return nil, err
		}
		return &builds[0], nil
	}
}
