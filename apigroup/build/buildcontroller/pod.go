package buildcontroller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	buildlisters "github.com/openshift/client-go/build/listers/build/v1"
	imagelisters "github.com/openshift/client-go/image/listers/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/internal/buildpod"
)

// podFactory creates build pods.
type podFactory struct {
	*Controllers
	secrets coreclient.CoreV1Interface
	nodes   coreclient.NodesGetter
	streams imagelisters.ImageStreamLister
	configs buildlisters.BuildConfigLister
	access  streamAccess
}

// pod returns a build's pod. output is the image reference that the build pushes to, or "" if the
// build does not push an image.
func (m *podFactory) pod(ctx context.Context, build *buildv1.Build) (pod *corev1.Pod, output string, err error) {
	buildForPod := build.DeepCopy() // the Build that the builder receives
	buildForPod.SetGroupVersionKind(buildv1.GroupVersion.WithKind("Build"))
	buildForPod.ManagedFields = nil
	buildForPod.Status.Reason, buildForPod.Status.Message = "", ""
	if output, err = m.output(ctx, build); err != nil {
		return nil, "", err
	}
	if output != "" {
		buildForPod.Status.OutputDockerImageReference = output
		buildForPod.Spec.Output.To = &corev1.ObjectReference{Kind: instantiate.DockerKind, Name: output}
	}
	if err := m.resolve(ctx, buildForPod); err != nil {
		return nil, "", err
	}
	settings := m.Settings.current.Load() // read the settings once, because they can change
	settings.applyTo(&buildForPod.Spec)
	if err := resolveFields(buildForPod); err != nil {
		return nil, "", err
	}
	if err := m.defaultSecrets(ctx, buildForPod, build.Spec.Output.To); err != nil {
		return nil, "", err
	}
	container, err := m.container(buildForPod)
	if err != nil {
		return nil, "", err
	}
	pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: instantiate.PodName(build.Name), Namespace: build.Namespace, Labels: maps.Clone(build.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(build, buildv1.GroupVersion.WithKind("Build"))},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container}, RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: buildForPod.Spec.ServiceAccount,
			ActiveDeadlineSeconds: build.Spec.CompletionDeadlineSeconds, NodeSelector: buildForPod.Spec.NodeSelector,
		},
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, buildv1.BuildLabel, instantiate.Label(build.Name))
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, buildv1.BuildAnnotation, build.Name)
	if custom := buildForPod.Spec.Strategy.CustomStrategy; custom != nil && custom.PullSecret != nil {
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{*custom.PullSecret}
	}
	settings.applyToPod(pod)
	if buildForPod.Spec.Strategy.JenkinsPipelineStrategy != nil {
		m.addRunner(pod, buildForPod)
		return pod, output, nil
	}
	mount(pod, buildForPod)
	if err := m.mountCache(ctx, pod, buildForPod); err != nil {
		return nil, "", err
	}
	m.secure(&pod.Spec, buildForPod.Spec.Strategy.CustomStrategy != nil)
	return pod, output, nil
}

// output returns the image reference that the build pushes to, or "" if the build does not push an
// image.
func (m *podFactory) output(ctx context.Context, build *buildv1.Build) (string, error) {
	to := build.Spec.Output.To
	if to == nil || to.Kind == instantiate.DockerKind {
		if to == nil {
			return "", nil
		}
		return to.Name, nil
	}
	namespace := to.Namespace
	if namespace == "" {
		namespace = build.Namespace
	}
	name, tag, _ := strings.Cut(to.Name, ":")
	stream, err := m.streams.ImageStreams(namespace).Get(name)
	if err == nil && stream.Status.DockerImageRepository != "" {
		allowed, err := m.access.allowed(ctx, build.Namespace, &build.Spec.CommonSpec, pull.Update, namespace, name)
		if err != nil {
			return "", err
		}
		if allowed {
			return stream.Status.DockerImageRepository + ":" + tag, nil
		}
	}
	if err == nil || apierrors.IsNotFound(err) {
		err = fmt.Errorf("find output of build %q: image stream %q in namespace %q does not exist, the cluster has no registry, or service account %q cannot push to it; to create an image stream, run: oc create imagestream",
			build.Name, name, namespace, instantiate.AccountOf(&build.Spec.CommonSpec))
	}
	return "", &reasonError{reason: buildv1.StatusReasonInvalidOutputReference, message: "Output image could not be resolved.", cause: err}
}

// resolve replaces the image stream tags in a build with the pull specs that they resolve to. A
// build that was instantiated from a configuration already refers to images.
func (m *podFactory) resolve(ctx context.Context, build *buildv1.Build) error {
	images := m.access.images(ctx, m.streams, build.Namespace, &build.Spec.CommonSpec, nil)
	for _, reference := range instantiate.References(&build.Spec.CommonSpec) {
		image, err := images.Resolve(build.Namespace, reference)
		if err != nil {
			return &reasonError{reason: buildv1.StatusReasonInvalidImageReference, message: "Referenced image could not be resolved.", cause: err}
		}
		*reference = corev1.ObjectReference{Kind: instantiate.DockerKind, Name: image}
	}
	return nil
}

// container returns the container of a build's pod. Its name and image depend on the strategy.
func (m *podFactory) container(build *buildv1.Build) (corev1.Container, error) {
	strategy := &build.Spec.Strategy
	container := corev1.Container{
		Image: m.Image, ImagePullPolicy: corev1.PullIfNotPresent, Resources: build.Spec.Resources,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	switch {
	case strategy.DockerStrategy != nil:
		container.Name = "docker-build"
	case strategy.SourceStrategy != nil:
		container.Name = "sti-build"
	case strategy.CustomStrategy != nil:
		container.Name, container.Image = "custom-build", strategy.CustomStrategy.From.Name
		if strategy.CustomStrategy.ForcePull {
			container.ImagePullPolicy = corev1.PullAlways
		}
	case strategy.JenkinsPipelineStrategy != nil:
		image, err := m.runnerImage()
		if err != nil {
			return container, err
		}
		container.Name, container.Image = runnerContainer, image
		container.TerminationMessagePolicy = corev1.TerminationMessageReadFile
	default:
		return container, fmt.Errorf("create pod of build %q: it has no strategy", build.Name)
	}
	if build.Spec.Source.Binary != nil {
		container.Stdin, container.StdinOnce = true, true
	}
	var err error
	container.Env, err = m.environment(build)
	return container, err
}

// environment returns the environment variables of a build's container: the strategy's variables
// and the platform's variables, which take precedence.
func (m *podFactory) environment(build *buildv1.Build) ([]corev1.EnvVar, error) {
	text, err := json.Marshal(build)
	if err != nil {
		return nil, fmt.Errorf("encode build %q: %w", build.Name, err)
	}
	env := slices.Clone(*instantiate.Env(&build.Spec.Strategy))
	if build.Spec.Strategy.CustomStrategy == nil && build.Spec.Strategy.JenkinsPipelineStrategy == nil {
		env = slices.DeleteFunc(env, func(v corev1.EnvVar) bool {
			return v.ValueFrom == nil && !slices.Contains(buildv1.WhitelistEnvVarNames, v.Name)
		})
		for _, v := range env {
			if v.ValueFrom != nil && isSensitive(v.Name) {
				return nil, &reasonError{reason: buildv1.StatusReasonUnresolvableEnvironmentVariable, message: "Unable to resolve build environment variable reference.",
					cause: fmt.Errorf("variable %q of build %q would affect the builder; set a value instead of valueFrom", v.Name, build.Name)}
			}
		}
	}
	variables := []corev1.EnvVar{
		{Name: buildpod.BuildVariable, Value: string(text)}, {Name: "LANG", Value: "C.utf8"}, {Name: buildpod.VersionVariable, Value: m.Version},
	}
	add := func(name, value string) {
		if value != "" {
			variables = append(variables, corev1.EnvVar{Name: name, Value: value})
		}
	}
	source := &build.Spec.Source
	if source.Git != nil {
		add("SOURCE_REPOSITORY", source.Git.URI)
		add("SOURCE_URI", source.Git.URI)
		add("SOURCE_REF", source.Git.Ref)
	}
	add("SOURCE_CONTEXT_DIR", source.ContextDir)
	if image := build.Status.OutputDockerImageReference; image != "" {
		registry, rest, ok := strings.Cut(image, "/")
		if !ok || !strings.ContainsAny(registry, ".:") && registry != "localhost" {
			registry, rest = "", image
		}
		add("OUTPUT_REGISTRY", registry)
		add("OUTPUT_IMAGE", rest)
	}
	if build.Spec.Output.PushSecret != nil {
		add("PUSH_DOCKERCFG_PATH", pushDir)
	}
	if pullSecret(&build.Spec.Strategy) != nil {
		add("PULL_DOCKERCFG_PATH", pullDir)
	}
	if source.SourceSecret != nil {
		add("SOURCE_SECRET_PATH", sourceDir)
	}
	return instantiate.Override(env, variables), nil
}

// isSensitive reports whether an environment variable affects the dynamic linker or the programs
// that the builder runs. Only the platform is allowed to set such variables, because builders have
// more privileges on their node than the user.
func isSensitive(name string) bool {
	upper := strings.ToUpper(name)
	for _, prefix := range []string{"LD_", "GIT_", "SSH_", "GO", "XDG_", "BUILDKIT_", "BUILDAH_", "CONTAINER", "DOCKER_", "PERL", "PYTHON", "BASH_", "SSL_", "KUBERNETES_"} {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"PATH", "HOME", "IFS", "ENV", "SHELL", "TMPDIR", "PAGER", "EDITOR", "VISUAL", buildpod.AllowedUIDsVariable, "DROP_CAPS"}, upper)
}
