package buildcontroller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
)

// outcome is how a build has ended, and why.
type outcome struct {
	phase   buildv1.BuildPhase
	reason  buildv1.StatusReason
	message string
}

// podDeleted is what becomes of a build whose pod somebody has removed.
func podDeleted() outcome {
	return outcome{buildv1.BuildPhaseError, buildv1.StatusReasonBuildPodDeleted, "The pod for this build was deleted before the build completed."}
}

// cancelled is the end of a build that is not to go on: because somebody wanted that, or because its source broke off, which the API server has noted.
func cancelled(build *buildv1.Build) outcome {
	if build.Status.Reason == buildv1.StatusReasonFetchSourceFailed {
		return outcome{buildv1.BuildPhaseFailed, build.Status.Reason, build.Status.Message}
	}
	return outcome{buildv1.BuildPhaseCancelled, buildv1.StatusReasonCancelledBuild, "The build was cancelled by the user."}
}

// pushed says whether our builder has reported the image that it pushed, which is the last that it does: how its pod ends then changes nothing, and
// kubelet tells of that one or two seconds later. What a custom builder still does after such a report is its own.
func pushed(build *buildv1.Build) bool {
	status := &build.Status
	return build.Spec.Strategy.CustomStrategy == nil && status.Reason == "" && status.Output.To != nil && status.Output.To.ImageDigest != ""
}

// end writes down the end of a build.
func (l *buildLoop) end(ctx context.Context, build *buildv1.Build, how outcome) error {
	next := build.DeepCopy()
	status := &next.Status
	status.Phase, status.Reason, status.Message = how.phase, how.reason, how.message
	status.CompletionTimestamp = now()
	if status.StartTimestamp == nil {
		status.StartTimestamp = status.CompletionTimestamp
	}
	status.Duration = status.CompletionTimestamp.Sub(status.StartTimestamp.Time)
	if how.phase == buildv1.BuildPhaseFailed {
		if pod, err := l.find(ctx, build); err == nil && pod != nil {
			status.LogSnippet = snippet(pod)
		}
	}
	if err := l.update(ctx, next); err != nil {
		return err
	}
	event := map[buildv1.BuildPhase][3]string{
		buildv1.BuildPhaseComplete:  {corev1.EventTypeNormal, "BuildCompleted", "completed successfully"},
		buildv1.BuildPhaseFailed:    {corev1.EventTypeNormal, "BuildFailed", "failed"},
		buildv1.BuildPhaseError:     {corev1.EventTypeNormal, "BuildFailed", "failed"},
		buildv1.BuildPhaseCancelled: {corev1.EventTypeNormal, "BuildCancelled", "has been cancelled"},
	}[how.phase]
	l.events.Eventf(build, event[0], event[1], "Build %s/%s %s", build.Namespace, build.Name, event[2])
	return nil
}

// result is what a pod that has ended means for its build.
func result(build *buildv1.Build, pod *corev1.Pod) outcome {
	terminated := terminations(pod)
	switch {
	case pod.Status.Phase == corev1.PodSucceeded && len(terminated) == 0:
		return outcome{buildv1.BuildPhaseError, buildv1.StatusReasonNoBuildContainerStatus, "The pod for this build has no container statuses indicating success or failure."}
	case pod.Status.Phase == corev1.PodSucceeded:
		return outcome{phase: buildv1.BuildPhaseComplete}
	case pod.DeletionTimestamp != nil:
		return podDeleted()
	case pod.Status.Reason == "Evicted":
		return outcome{buildv1.BuildPhaseFailed, buildv1.StatusReasonBuildPodEvicted, pod.Status.Message}
	}
	for _, state := range terminated {
		if state.Reason == "OOMKilled" {
			return outcome{buildv1.BuildPhaseFailed, buildv1.StatusReasonOutOfMemoryKilled, "The build pod was killed due to an out of memory condition."}
		}
	}
	switch {
	case build.Status.Reason != "": // the builder has said why
		return outcome{buildv1.BuildPhaseFailed, build.Status.Reason, build.Status.Message}
	case pod.Status.Reason == "DeadlineExceeded":
		return outcome{buildv1.BuildPhaseFailed, buildv1.StatusReasonGenericBuildFailed, "The build took longer than its completion deadline."}
	}
	for _, state := range terminated {
		if state.Reason == "ContainerStatusUnknown" { // kubelet's word, with a code of its own
			return outcome{buildv1.BuildPhaseFailed, buildv1.StatusReasonFailedContainer, "The node lost the container of this build, and nobody knows how it ended; start the build again."}
		}
		if signal := state.ExitCode - killed; signal > 0 && signal < signals {
			return outcome{buildv1.BuildPhaseFailed, buildv1.StatusReasonGenericBuildFailed, fmt.Sprintf("The build ended with code %d, as what is killed by signal %d does; start it again.", state.ExitCode, signal)}
		}
	}
	return outcome{buildv1.BuildPhaseFailed, buildv1.StatusReasonGenericBuildFailed, "Generic Build failure - check logs for details."}
}

// succeeded says whether the container of a pod has ended well. Kubelet says so of the pod a second later, when it has taken it down.
func succeeded(pod *corev1.Pod) bool {
	ended := terminations(pod)
	return len(ended) > 0 && len(ended) == len(pod.Spec.Containers)+len(pod.Spec.InitContainers) &&
		!slices.ContainsFunc(ended, func(state *corev1.ContainerStateTerminated) bool { return state.ExitCode != 0 })
}

// killed is what an exit code exceeds by the signal that has ended a process; signals bounds the signals.
const killed, signals = 128, 65

func terminations(pod *corev1.Pod) (states []*corev1.ContainerStateTerminated) {
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if status.State.Terminated != nil {
			states = append(states, status.State.Terminated)
		}
	}
	return states
}

// snippetLines and snippetWidth limit what a build keeps of its log.
const snippetLines, snippetWidth = 5, 120

// snippet is the end of what a pod that has failed printed.
func snippet(pod *corev1.Pod) string {
	for _, state := range terminations(pod) {
		if state.ExitCode == 0 || state.Message == "" {
			continue
		}
		lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(state.Message, "")), "\n")
		lines = lines[max(0, len(lines)-snippetLines):]
		for i, line := range lines {
			if short := []rune(line); len(short) > snippetWidth {
				lines[i] = string(short[:snippetWidth-3]) + "..."
			}
		}
		return strings.Join(lines, "\n")
	}
	return ""
}
