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
)

// maker makes the pods of builds.
type maker struct {
	*Controllers
	secrets coreclient.CoreV1Interface
	nodes   coreclient.NodesGetter
	streams imagelisters.ImageStreamLister
	configs buildlisters.BuildConfigLister
	rights  rights
}

// workspace is where builders keep what they work on.
const workspace = "/var/lib/slipway-builder"

// pod is the pod of a build, with the image that it will push, empty for none.
func (m *maker) pod(ctx context.Context, build *buildv1.Build) (pod *corev1.Pod, output string, err error) {
	told := build.DeepCopy() // what the builder sees
	told.SetGroupVersionKind(buildv1.GroupVersion.WithKind("Build"))
	told.ManagedFields = nil
	told.Status.Reason, told.Status.Message = "", ""
	if output, err = m.output(ctx, build); err != nil {
		return nil, "", err
	}
	if output != "" {
		told.Status.OutputDockerImageReference = output
		told.Spec.Output.To = &corev1.ObjectReference{Kind: instantiate.DockerKind, Name: output}
	}
	if err := m.resolve(ctx, told); err != nil {
		return nil, "", err
	}
	decided := m.Settings.now.Load() // once, so that a pod does not get a part of each
	decided.applyTo(&told.Spec)
	if err := resolveFields(told); err != nil {
		return nil, "", err
	}
	if err := m.chooseSecrets(ctx, told, build.Spec.Output.To); err != nil {
		return nil, "", err
	}
	container, err := m.container(told)
	if err != nil {
		return nil, "", err
	}
	pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: instantiate.PodName(build.Name), Namespace: build.Namespace, Labels: maps.Clone(build.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(build, buildv1.GroupVersion.WithKind("Build"))},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container}, RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: told.Spec.ServiceAccount,
			ActiveDeadlineSeconds: build.Spec.CompletionDeadlineSeconds, NodeSelector: told.Spec.NodeSelector,
		},
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, buildv1.BuildLabel, instantiate.Label(build.Name))
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, buildv1.BuildAnnotation, build.Name)
	if custom := told.Spec.Strategy.CustomStrategy; custom != nil && custom.PullSecret != nil {
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{*custom.PullSecret}
	}
	decided.applyToPod(pod)
	mount(pod, told)
	if err := m.keepCache(ctx, pod, told); err != nil {
		return nil, "", err
	}
	m.secure(&pod.Spec, told.Spec.Strategy.CustomStrategy != nil)
	return pod, output, nil
}

// output is the image that a build pushes to, empty for a build that pushes nothing.
func (m *maker) output(ctx context.Context, build *buildv1.Build) (string, error) {
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
		may, err := m.rights.may(ctx, build.Namespace, &build.Spec.CommonSpec, pull.Update, namespace, name)
		if err != nil {
			return "", err
		}
		if may {
			return stream.Status.DockerImageRepository + ":" + tag, nil
		}
	}
	if err == nil || apierrors.IsNotFound(err) {
		err = fmt.Errorf("find output of build %q: image stream %q in namespace %q is not there, or the cluster has no registry, or service account %q may not push to it; create it with: oc create imagestream",
			build.Name, name, namespace, instantiate.AccountOf(&build.Spec.CommonSpec))
	}
	return "", &problem{reason: buildv1.StatusReasonInvalidOutputReference, message: "Output image could not be resolved.", cause: err}
}

// resolve puts images in place of the tags that a build names which somebody wrote himself; those of configurations name images.
func (m *maker) resolve(ctx context.Context, build *buildv1.Build) error {
	images := m.rights.images(ctx, m.streams, build.Namespace, &build.Spec.CommonSpec, nil)
	for _, reference := range instantiate.References(&build.Spec.CommonSpec) {
		image, err := images.Resolve(build.Namespace, reference)
		if err != nil {
			return &problem{reason: buildv1.StatusReasonInvalidImageReference, message: "Referenced image could not be resolved.", cause: err}
		}
		*reference = corev1.ObjectReference{Kind: instantiate.DockerKind, Name: image}
	}
	return nil
}

// container is the one container of a build's pod.
func (m *maker) container(build *buildv1.Build) (corev1.Container, error) {
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
	default:
		return container, fmt.Errorf("make pod of build %q: it has no strategy", build.Name)
	}
	if build.Spec.Source.Binary != nil {
		container.Stdin, container.StdinOnce = true, true
	}
	var err error
	container.Env, err = m.environment(build)
	return container, err
}

// environment are the variables of a build's container.
func (m *maker) environment(build *buildv1.Build) ([]corev1.EnvVar, error) {
	text, err := json.Marshal(build)
	if err != nil {
		return nil, fmt.Errorf("write down build %q: %w", build.Name, err)
	}
	env := slices.Clone(*instantiate.Env(&build.Spec.Strategy))
	if build.Spec.Strategy.CustomStrategy == nil {
		env = slices.DeleteFunc(env, func(v corev1.EnvVar) bool {
			return v.ValueFrom == nil && !slices.Contains(buildv1.WhitelistEnvVarNames, v.Name)
		})
		for _, v := range env {
			if v.ValueFrom != nil && steers(v.Name) {
				return nil, &problem{reason: buildv1.StatusReasonUnresolvableEnvironmentVariable, message: "Unable to resolve build environment variable reference.",
					cause: fmt.Errorf("variable %q of build %q would steer the builder itself: give it as a value, without valueFrom", v.Name, build.Name)}
			}
		}
	}
	own := []corev1.EnvVar{{Name: "BUILD", Value: string(text)}, {Name: "LANG", Value: "C.utf8"}, {Name: "ORIGIN_VERSION", Value: m.Version}}
	add := func(name, value string) {
		if value != "" {
			own = append(own, corev1.EnvVar{Name: name, Value: value})
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
		registry, rest, found := strings.Cut(image, "/")
		if !found || !strings.ContainsAny(registry, ".:") && registry != "localhost" {
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
	return instantiate.Override(env, own), nil
}

// steers says whether the programs that a builder runs, or the loader of programs, obey a variable: such values come from the platform alone, since
// builders may do more on their node than the user.
func steers(name string) bool {
	upper := strings.ToUpper(name)
	for _, prefix := range []string{"LD_", "GIT_", "SSH_", "GO", "XDG_", "BUILDKIT_", "BUILDAH_", "CONTAINER", "DOCKER_", "PERL", "PYTHON", "BASH_", "SSL_", "KUBERNETES_"} {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"PATH", "HOME", "IFS", "ENV", "SHELL", "TMPDIR", "PAGER", "EDITOR", "VISUAL", "ALLOWED_UIDS", "DROP_CAPS"}, upper)
}
