package deployer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	appsv1 "github.com/openshift/api/apps/v1"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// hook runs a hook, which can be nil. The hook's failure policy determines what happens if the hook
// fails. Retry repeats the hook until it succeeds, Abort fails the deployment, and Ignore ignores
// the failure.
func (r *run) hook(ctx context.Context, name string, hook *appsv1.LifecycleHook) error {
	if hook == nil {
		return nil
	}
	var err error
	switch {
	case hook.ExecNewPod != nil:
		err = r.exec(ctx, name, hook)
	default:
		err = r.tag(ctx, name, hook)
	}
	if err == nil {
		r.logf("%s: Success", name)
		return nil
	}
	if hook.FailurePolicy == appsv1.LifecycleHookFailurePolicyIgnore && ctx.Err() == nil {
		r.logf("%s: Failed, which is ignored: %v", name, err)
		return nil
	}
	return fmt.Errorf("run hook %q: %w", name, err)
}

// exec creates a hook's pod and waits until the pod terminates. If an earlier run of this deployer
// has already created the pod, exec only waits.
func (r *run) exec(ctx context.Context, name string, hook *appsv1.LifecycleHook) error {
	to, err := r.read(ctx, r.to)
	if err != nil {
		return err
	}
	pod, err := hookPod(to, name, hook, r.config.Spec.Strategy)
	if err != nil {
		return err
	}
	r.logf("%s: Running hook pod ...", name)
	err = retryRequest(ctx, func() error {
		_, err := r.Core.Pods(r.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create pod %q: %w", pod.Name, err)
	}
	failed := false
	err = r.pods(ctx, selectName(pod.Name), func(byName map[string]*corev1.Pod) (bool, error) {
		existing := byName[pod.Name]
		if existing == nil {
			return false, nil
		}
		if !rollout.Owns(to, existing) {
			return false, fmt.Errorf("pod %q does not belong to this deployment; delete it", pod.Name)
		}
		failed = existing.Status.Phase == corev1.PodFailed
		return failed || existing.Status.Phase == corev1.PodSucceeded, nil
	})
	if err != nil {
		return err
	}
	r.copyLog(ctx, pod.Name)
	if failed {
		return errors.New("the hook's pod has failed")
	}
	return nil
}

// copyLog appends a hook's output to the deployer's log. An error does not fail the hook.
func (r *run) copyLog(ctx context.Context, pod string) {
	stream, err := r.Core.Pods(r.Namespace).GetLogs(pod, &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		r.logf("Cannot read the log of %s: %v", pod, err)
		return
	}
	defer stream.Close()
	_, _ = io.Copy(r.Out, stream)
}

// hookPod returns a hook's pod. The pod runs the hook's command in a copy of a container of the
// deployment's template.
func hookPod(to *corev1.ReplicationController, name string, hook *appsv1.LifecycleHook, strategy appsv1.DeploymentStrategy) (*corev1.Pod, error) {
	exec, template := hook.ExecNewPod, to.Spec.Template.Spec
	i := slices.IndexFunc(template.Containers, func(c corev1.Container) bool { return c.Name == exec.ContainerName })
	if i < 0 {
		return nil, fmt.Errorf("no container %q in the template", exec.ContainerName)
	}
	from := template.Containers[i]
	inHook := func(volume string) bool { return slices.Contains(exec.Volumes, volume) }
	container := corev1.Container{
		Name: "lifecycle", Image: from.Image, ImagePullPolicy: from.ImagePullPolicy, Command: exec.Command, WorkingDir: from.WorkingDir,
		Env: environment(from.Env, exec.Env, to), EnvFrom: from.EnvFrom, Resources: from.Resources, SecurityContext: from.SecurityContext,
		VolumeMounts: slices.DeleteFunc(slices.Clone(from.VolumeMounts), func(m corev1.VolumeMount) bool { return !inHook(m.Name) }),
	}
	restart := corev1.RestartPolicyNever
	if hook.FailurePolicy == appsv1.LifecycleHookFailurePolicyRetry {
		restart = corev1.RestartPolicyOnFailure
	}
	suffix := "hook-" + name
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:        to.Name + "-" + suffix,
			Labels:      map[string]string{appsv1.DeployerPodForDeploymentLabel: to.Name, rollout.PodTypeLabel: suffix},
			Annotations: map[string]string{rollout.DeploymentAnnotation: to.Name, appsv1.DeploymentConfigAnnotation: rollout.ConfigOf(to)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ReplicationController", Name: to.Name, UID: to.UID,
			}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container}, RestartPolicy: restart,
			Volumes:               slices.DeleteFunc(slices.Clone(template.Volumes), func(v corev1.Volume) bool { return !inHook(v.Name) }),
			ActiveDeadlineSeconds: strategy.ActiveDeadlineSeconds,
			NodeSelector:          template.NodeSelector, Tolerations: template.Tolerations, ImagePullSecrets: template.ImagePullSecrets,
			SecurityContext: template.SecurityContext, HostNetwork: template.HostNetwork,
		},
	}, nil
}

// environment merges the environment variables of a container and a hook, and adds the deployment's
// name and namespace. The hook's variables take precedence over the container's.
func environment(container, hook []corev1.EnvVar, to *corev1.ReplicationController) []corev1.EnvVar {
	var all []corev1.EnvVar
	for _, variable := range container {
		if !slices.ContainsFunc(hook, func(v corev1.EnvVar) bool { return v.Name == variable.Name }) {
			all = append(all, variable)
		}
	}
	all = append(all, hook...)
	return append(all, corev1.EnvVar{Name: rollout.NameVariable, Value: to.Name}, corev1.EnvVar{Name: rollout.NamespaceVariable, Value: to.Namespace})
}

// tag tags the images of the named containers into image streams.
func (r *run) tag(ctx context.Context, name string, hook *appsv1.LifecycleHook) error {
	for _, action := range hook.TagImages {
		containers := r.config.Spec.Template.Spec.Containers
		i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == action.ContainerName })
		if i < 0 {
			return fmt.Errorf("no container %q in the template", action.ContainerName)
		}
		namespace := action.To.Namespace
		if namespace == "" {
			namespace = r.Namespace
		}
		tag := &imagev1.ImageStreamTag{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: action.To.Name},
			Tag:        &imagev1.TagReference{From: &corev1.ObjectReference{Kind: "DockerImage", Name: containers[i].Image}},
		}
		err := retryRequest(ctx, func() error {
			_, err := r.Tags.ImageStreamTags(namespace).Update(ctx, tag, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("tag image %q as %q: %w", containers[i].Image, action.To.Name, err)
		}
		r.logf("%s: Tagged %q into %s/%s", name, containers[i].Image, namespace, action.To.Name)
	}
	return nil
}
