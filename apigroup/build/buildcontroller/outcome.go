package buildcontroller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
)

// outcome contains a build's final phase, and the reason and message for it.
type outcome struct {
	phase   buildv1.BuildPhase
	reason  buildv1.StatusReason
	message string
}

// podDeleted returns the outcome of a build whose pod was deleted.
func podDeleted() outcome {
	return outcome{buildv1.BuildPhaseError, buildv1.StatusReasonBuildPodDeleted, "The pod for this build was deleted before the build completed."}
}

// canceledOutcome returns the outcome of a canceled build. Either a user canceled the build, or the
// API server did, because the upload of the source failed.
func canceledOutcome(build *buildv1.Build) outcome {
	if build.Status.Reason == buildv1.StatusReasonFetchSourceFailed {
		return outcome{buildv1.BuildPhaseFailed, build.Status.Reason, build.Status.Message}
	}
	return outcome{buildv1.BuildPhaseCancelled, buildv1.StatusReasonCancelledBuild, "The build was cancelled by the user."}
}

// isPushed reports whether Slipway's builder has reported the pushed image, which is its last
// action. The build is then complete, although the kubelet reports the pod's exit only one or two
// seconds later. The result is false for a custom builder, because it can continue after its
// report.
func isPushed(build *buildv1.Build) bool {
	status := &build.Status
	return build.Spec.Strategy.CustomStrategy == nil && status.Reason == "" && status.Output.To != nil && status.Output.To.ImageDigest != ""
}

// end sets a build's final status.
func (l *buildController) end(ctx context.Context, build *buildv1.Build, o outcome) error {
	next := build.DeepCopy()
	status := &next.Status
	status.Phase, status.Reason, status.Message = o.phase, o.reason, o.message
	status.CompletionTimestamp = now()
	if status.StartTimestamp == nil {
		status.StartTimestamp = status.CompletionTimestamp
	}
	status.Duration = status.CompletionTimestamp.Sub(status.StartTimestamp.Time)
	if o.phase == buildv1.BuildPhaseFailed {
		if pod, err := l.podOf(ctx, build); err == nil && pod != nil {
			status.LogSnippet = logSnippet(pod)
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
	}[o.phase]
	l.events.Eventf(build, event[0], event[1], "Build %s/%s %s", build.Namespace, build.Name, event[2])
	return nil
}

// result returns the outcome of a build whose pod has exited.
func result(build *buildv1.Build, pod *corev1.Pod) outcome {
	states := terminatedStates(pod)
	switch {
	case pod.Status.Phase == corev1.PodSucceeded && len(states) == 0:
		return outcome{buildv1.BuildPhaseError, buildv1.StatusReasonNoBuildContainerStatus, "The pod for this build has no container statuses indicating success or failure."}
	case pod.Status.Phase == corev1.PodSucceeded && build.Spec.Strategy.JenkinsPipelineStrategy != nil:
		return pipelineResult(pod)
	case pod.Status.Phase == corev1.PodSucceeded:
		return outcome{phase: buildv1.BuildPhaseComplete}
	case pod.DeletionTimestamp != nil:
		return podDeleted()
	case pod.Status.Reason == "Evicted":
		return outcome{buildv1.BuildPhaseFailed, buildv1.StatusReasonBuildPodEvicted, pod.Status.Message}
	}
	for _, state := range states {
		if state.Reason == "OOMKilled" {
			return outcome{buildv1.BuildPhaseFailed, buildv1.StatusReasonOutOfMemoryKilled, "The build pod was killed due to an out of memory condition."}
		}
	}
	switch {
	case build.Status.Reason != "": // the builder has reported the reason
		return outcome{buildv1.BuildPhaseFailed, build.Status.Reason, build.Status.Message}
	case pod.Status.Reason == "DeadlineExceeded":
		return outcome{buildv1.BuildPhaseFailed, buildv1.StatusReasonGenericBuildFailed, "The build took longer than its completion deadline."}
	}
	for _, state := range states {
		if state.Reason == "ContainerStatusUnknown" { // the kubelet also sets an exit code in this case
			return outcome{buildv1.BuildPhaseFailed, buildv1.StatusReasonFailedContainer, "The node lost the container of this build, so its exit code is unknown. Start the build again."}
		}
		if signal := state.ExitCode - signalExitCode; signal > 0 && signal <= maxSignal {
			return outcome{buildv1.BuildPhaseFailed, buildv1.StatusReasonGenericBuildFailed, fmt.Sprintf("The build was killed by signal %d (exit code %d). Start it again.", signal, state.ExitCode)}
		}
	}
	return outcome{buildv1.BuildPhaseFailed, buildv1.StatusReasonGenericBuildFailed, "Generic Build failure - check logs for details."}
}

// isSucceeded reports whether all containers of a pod have succeeded. It does not use the pod's
// phase, because the kubelet updates the phase a second later, after it has removed the pod
// sandbox.
func isSucceeded(pod *corev1.Pod) bool {
	states := terminatedStates(pod)
	return len(states) > 0 && len(states) == len(pod.Spec.Containers)+len(pod.Spec.InitContainers) &&
		!slices.ContainsFunc(states, func(state *corev1.ContainerStateTerminated) bool { return state.ExitCode != 0 })
}

// The exit code of a process that is killed by a signal is signalExitCode plus the signal number.
const signalExitCode, maxSignal = 128, 64

func terminatedStates(pod *corev1.Pod) (states []*corev1.ContainerStateTerminated) {
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if status.State.Terminated != nil {
			states = append(states, status.State.Terminated)
		}
	}
	return states
}

// snippetLines is the maximum number of lines in the log snippet of a build's status. snippetWidth
// is the maximum number of characters in a line.
const snippetLines, snippetWidth = 5, 120

// logSnippet returns the end of a failed pod's log.
func logSnippet(pod *corev1.Pod) string {
	for _, state := range terminatedStates(pod) {
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
