package buildcontroller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/buildpod"
)

// The image stream tag of the program that runs Jenkinsfiles, and the name of its container.
const runnerNamespace, runnerStream, runnerTag, runnerContainer = "openshift", "pipeline-runner", "latest", "pipeline"

// errNoRunner is the reason why a pipeline waits if the cluster has no runner image.
var errNoRunner = errors.New("the image stream tag openshift/pipeline-runner:latest has no image: on a master, run slipway samples build pipeline-runner")

// servedByJenkins reports whether Jenkins runs a pipeline. If a project has a Jenkins service,
// Jenkins' sync plugin runs all pipelines. If the service is deleted, Jenkins still runs the
// pipelines that it has started.
func (l *buildController) servedByJenkins(build *buildv1.Build) bool {
	if build.Spec.Strategy.JenkinsPipelineStrategy == nil || build.Annotations[buildv1.BuildPodNameAnnotation] != "" {
		return false
	}
	phase := build.Status.Phase
	return phase == buildv1.BuildPhasePending || phase == buildv1.BuildPhaseRunning || l.hasJenkins(build.Namespace)
}

// jenkinsCancels reports whether Jenkins sets a pipeline's phase after a user cancels the pipeline.
func (l *buildController) jenkinsCancels(build *buildv1.Build) bool {
	return build.Status.Phase != buildv1.BuildPhaseNew && l.hasJenkins(build.Namespace)
}

func (l *buildController) hasJenkins(namespace string) bool {
	_, err := l.services.Services(namespace).Get(l.JenkinsService)
	return err == nil // the only possible error is NotFound
}

// instanceRequeueInterval is how often a waiting pipeline checks whether the TemplateInstance of
// Jenkins has failed.
const instanceRequeueInterval = 30 * time.Second

// awaitJenkins requeues a pipeline that must wait for the Jenkins service of its project, which a
// TemplateInstance creates. If the TemplateInstance has failed, awaitJenkins records an event for
// the pipeline. It does not use caches, because they can be older than the pipeline.
func (l *buildController) awaitJenkins(ctx context.Context, build *buildv1.Build) error {
	if !l.JenkinsProvisioned || build.Spec.Strategy.JenkinsPipelineStrategy == nil {
		return nil
	}
	instance, err := l.templates.TemplateInstances(build.Namespace).Get(ctx, l.JenkinsService, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Jenkins template instance: %w", err)
	}
	for _, condition := range instance.Status.Conditions {
		switch {
		case condition.Status != corev1.ConditionTrue:
		case condition.Type == templatev1.TemplateInstanceInstantiateFailure:
			l.events.Eventf(build, corev1.EventTypeWarning, "JenkinsFailed",
				"The pipeline waits for the service %q, but the template instance %q has failed: %s. Remove the cause, run oc delete templateinstance %s, and start a pipeline.",
				l.JenkinsService, instance.Name, condition.Message, instance.Name)
			return controller.RequeueAfter(requeueInterval)
		case condition.Type == templatev1.TemplateInstanceReady:
			return controller.RequeueAfter(requeueInterval)
		}
	}
	return controller.RequeueAfter(instanceRequeueInterval)
}

// keysOfJenkins returns the keys of a project's unfinished pipelines after a change of its Jenkins
// service. If the service was deleted, Slipway's Jenkinsfile runner runs the pipelines that Jenkins
// has not started. If the service was created, the pipelines no longer block other builds of their
// configuration.
func (l *buildController) keysOfJenkins(object any) (keys []controller.Key) {
	service := object.(*corev1.Service)
	if service.Name != l.JenkinsService {
		return nil
	}
	// The cache returns no errors.
	builds, _ := l.builds.Builds(service.Namespace).List(labels.Everything())
	for _, build := range builds {
		if build.Spec.Strategy.JenkinsPipelineStrategy != nil && !instantiate.Ended(build) {
			keys = append(keys, cache.MetaObjectToName(build))
			if config := instantiate.ConfigOf(build); config != "" {
				keys = append(keys, nextKey(build.Namespace, config))
			}
		}
	}
	return keys
}

// runnerImage returns the image that runs Jenkinsfiles. If the cluster has no such image, the error
// wraps errNoRunner.
func (m *podFactory) runnerImage() (string, error) {
	stream, err := m.streams.ImageStreams(runnerNamespace).Get(runnerStream)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("read pipeline runner's image stream: %w", err)
	}
	if err == nil {
		if image := pull.LatestSpec(stream, runnerTag); image != "" {
			return image, nil
		}
	}
	return "", &reasonError{reason: buildv1.StatusReasonInvalidImageReference, message: "The pipeline runner is missing: " + errNoRunner.Error() + ".", cause: errNoRunner}
}

// reportRunner creates an event for a pipeline that is waiting for the runner image. It creates
// only one event for each pipeline.
func (l *buildController) reportRunner(build *buildv1.Build, err error) {
	if errors.Is(err, errNoRunner) && build.Status.Reason == "" {
		l.events.Event(build, corev1.EventTypeWarning, "PipelineRunnerMissing", err.Error())
	}
}

// addRunner adds the Jenkinsfile runner's work directory and a container that clones the repository
// to a pipeline's pod. The containers are unprivileged, and the kubelet restarts them after a node
// crash. The runner does not repeat finished steps.
func (m *podFactory) addRunner(pod *corev1.Pod, build *buildv1.Build) {
	spec, work := &pod.Spec, mounts{&pod.Spec}
	spec.RestartPolicy = corev1.RestartPolicyOnFailure
	work.add(buildpod.WorkDir, false, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: workLimit(build.Spec.Resources.Limits)}})
	runner := &spec.Containers[0]
	runner.SecurityContext = unprivileged()
	if build.Spec.Source.Git == nil {
		return
	}
	source := corev1.Container{
		Name: "git-clone", Image: m.Image, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{buildpod.FetchArgument}, Env: runner.Env,
		Resources: build.Spec.Resources, VolumeMounts: runner.VolumeMounts, SecurityContext: unprivileged(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyNever),
	}
	if secret := build.Spec.Source.SourceSecret; secret != nil {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "source-secret", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secret.Name, DefaultMode: ptr.To[int32](0o440)},
		}})
		source.VolumeMounts = append(source.VolumeMounts, corev1.VolumeMount{Name: "source-secret", MountPath: sourceDir, ReadOnly: true})
	}
	spec.InitContainers = append(spec.InitContainers, source)
}

func unprivileged() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		Privileged: ptr.To(false), AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// pipelineResult returns the outcome of a pipeline whose runner has exited. The first word of the
// runner's termination message is the Jenkinsfile's result.
func pipelineResult(pod *corev1.Pod) outcome {
	message := ""
	for _, status := range pod.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil {
			message = ended.Message
		}
	}
	result, rest, _ := strings.Cut(message, "\n")
	switch result {
	case "SUCCESS", "UNSTABLE":
		return outcome{phase: buildv1.BuildPhaseComplete}
	case "ABORTED":
		return outcome{buildv1.BuildPhaseCancelled, buildv1.StatusReasonCancelledBuild, "The pipeline was aborted. " + strings.TrimSpace(rest)}
	}
	return outcome{buildv1.BuildPhaseFailed, buildv1.StatusReasonGenericBuildFailed, strings.TrimSpace("The pipeline failed. " + rest)}
}
