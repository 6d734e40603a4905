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

// pollInterval is the interval between checks of a build that has not started. notifier prints the
// first message after noticeDelay, and repeats an unchanged message after each noticeInterval.
const pollInterval, noticeDelay, noticeInterval = 500 * time.Millisecond, 3 * time.Second, 15 * time.Second

// notifier prints why and for how long a build has been waiting.
type notifier struct {
	out   io.Writer
	clock clock.PassiveClock

	start, last time.Time
	message     string
}

func newNotifier(out io.Writer, clock clock.PassiveClock) *notifier {
	return &notifier{out: out, clock: clock, start: clock.Now()}
}

// report prints a message about a build after noticeDelay. It then prints a message when the reason
// changes, and repeats an unchanged message after each noticeInterval.
func (t *notifier) report(build, reason string) {
	now := t.clock.Now()
	elapsed := now.Sub(t.start)
	if elapsed < noticeDelay || reason == t.message && now.Sub(t.last) < noticeInterval {
		return
	}
	t.message, t.last = reason, now
	fmt.Fprintf(t.out, "Waiting for build %q (%s): %s\n", build, elapsed.Truncate(time.Second), reason)
}

// Begin waits until a build starts or finishes, and writes the reason for the wait to out.
func (c *Client) Begin(ctx context.Context, name string, out io.Writer) error {
	return c.watch(ctx, newNotifier(out, c.clock), func() (*buildv1.Build, error) {
		return c.Builds(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// watch polls a build until it starts or finishes. find returns the build, or nil if the build does
// not exist yet.
func (c *Client) watch(ctx context.Context, t *notifier, find func() (*buildv1.Build, error)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		build, err := find()
		switch {
		case err != nil:
			return fmt.Errorf("wait for the start of the build: %w", err)
		case build == nil:
		case build.Status.Phase == buildv1.BuildPhaseRunning || instantiate.Ended(build):
			return nil
		default:
			t.report(build.Name, c.reason(ctx, build))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// reason explains why a build has not started, to the extent that the user's permissions allow.
func (c *Client) reason(ctx context.Context, build *buildv1.Build) string {
	switch {
	case build.Status.Reason != "":
		return fmt.Sprintf("%s (%s)", build.Status.Message, build.Status.Reason)
	case build.Status.Phase == buildv1.BuildPhaseNew:
		return c.predecessors(ctx, build)
	}
	pod, err := c.pods.Pods(c.Namespace).Get(ctx, instantiate.PodName(build.Name), metav1.GetOptions{})
	if err != nil {
		return "its pod is " + strings.ToLower(string(build.Status.Phase))
	}
	return podReason(pod)
}

// predecessors explains why a new build has no pod: it lists the builds that must finish first.
func (c *Client) predecessors(ctx context.Context, build *buildv1.Build) string {
	builds, _ := c.Of(ctx, instantiate.ConfigOf(build)) // empty if the user may not list builds
	var before []string
	for i := range builds {
		if other := &builds[i]; other.Name != build.Name && !instantiate.Ended(other) && instantiate.Number(other) < instantiate.Number(build) {
			before = append(before, other.Name)
		}
	}
	if len(before) == 0 || instantiate.Policy(build) == buildv1.BuildRunPolicyParallel {
		return "it has no pod yet"
	}
	return fmt.Sprintf("with the run policy %s it starts after %s", instantiate.Policy(build), strings.Join(before, ", "))
}

// podReason explains why a pod is not running.
func podReason(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("its pod %s is not scheduled: %s", pod.Name, condition.Message)
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
	return fmt.Sprintf("its pod %s is starting", pod.Name)
}

// started returns a function that returns a build config's newest build. If the build's number is
// not greater than after, the function returns nil.
func (c *Client) started(ctx context.Context, config string, after int64) func() (*buildv1.Build, error) {
	return func() (*buildv1.Build, error) {
		builds, err := c.Of(ctx, config)
		if err != nil || len(builds) == 0 || instantiate.Number(&builds[0]) <= after {
			return nil, err
		}
		return &builds[0], nil
	}
}
