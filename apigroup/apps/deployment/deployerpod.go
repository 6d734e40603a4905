package deployment

import (
	"context"
	"fmt"
	"maps"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// account is the service account of deployers.
const account = "deployer"

// setToken adds environment variables that contain the API token of the deployer's service account.
// A token volume would double the time that the pod takes to start, because the kubelet checks only
// every 300 ms whether volumes are mounted. OpenShift 3 mounted the same token as a volume. If the
// account has no token yet, setToken adds no variables, and the pod has a token volume.
func (l *deployerController) setToken(ctx context.Context, namespace string, pod *corev1.PodSpec) error {
	token, err := l.token(ctx, namespace)
	if err != nil || token == "" {
		return err
	}
	container := &pod.Containers[0]
	container.Env = append(container.Env,
		fromSecret(rollout.TokenVariable, token, corev1.ServiceAccountTokenKey), fromSecret(rollout.AuthorityVariable, token, corev1.ServiceAccountRootCAKey))
	pod.AutomountServiceAccountToken = ptr.To(false)
	return nil
}

// token returns the name of the secret that contains the deployer service account's API token, or
// "" if the account has no such secret.
func (l *deployerController) token(ctx context.Context, namespace string) (string, error) {
	serviceAccount, err := l.core.ServiceAccounts(namespace).Get(ctx, account, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read service account %q: %w", account, err)
	}
	for _, reference := range serviceAccount.Secrets {
		secret, err := l.core.Secrets(namespace).Get(ctx, reference.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return "", fmt.Errorf("read secret %q of service account %q: %w", reference.Name, account, err)
		}
		isToken := secret.Annotations[corev1.ServiceAccountUIDKey] == string(serviceAccount.UID) && secret.Type == corev1.SecretTypeServiceAccountToken
		if isToken && secret.DeletionTimestamp == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) > 0 && len(secret.Data[corev1.ServiceAccountRootCAKey]) > 0 {
			return secret.Name, nil
		}
	}
	return "", nil
}

// fromSecret returns an environment variable whose value comes from a key of a secret. The secret
// is optional: a pod with a missing required secret would not start, whereas a deployer reports a
// missing variable.
func fromSecret(variable, secret, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key, Optional: ptr.To(true),
	}}}
}

// Exit codes of processes that are terminated by SIGKILL and SIGTERM.
const killed, terminated = 137, 143

// pod returns a deployment's deployer pod. The container is restarted if it is killed, but not if
// it fails.
func (l *deployerController) pod(rc *corev1.ReplicationController, config *appsv1.DeploymentConfig) *corev1.Pod {
	strategy, template := config.Spec.Strategy, rc.Spec.Template.Spec
	container := corev1.Container{
		Name: "deployment", Image: l.Image, ImagePullPolicy: corev1.PullIfNotPresent, Resources: strategy.Resources,
		Env:           []corev1.EnvVar{{Name: rollout.NameVariable, Value: rc.Name}, {Name: rollout.NamespaceVariable, Value: rc.Namespace}},
		RestartPolicy: ptr.To(corev1.ContainerRestartPolicyNever),
		RestartPolicyRules: []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestart,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{killed, terminated}},
		}},
	}
	if custom := strategy.CustomParams; custom != nil {
		if container.Command = custom.Command; len(custom.Command) > 0 {
			container.Image = l.CustomImage
		}
		if custom.Image != "" {
			container.Image = custom.Image
		}
		container.Env = append(append([]corev1.EnvVar{}, custom.Environment...), container.Env...)
	}
	var affinity *corev1.Affinity
	if container.Image == l.Image || container.Image == l.CustomImage {
		affinity = imageAffinity()
	}
	labels, annotations := maps.Clone(strategy.Labels), maps.Clone(strategy.Annotations)
	meta := metav1.ObjectMeta{
		Name: rollout.DeployerName(rc.Name), Labels: labels, Annotations: annotations,
		// The owner reference is not a controller reference: the ReplicationController would
		// release a controlled pod that its selector does not match.
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ReplicationController", Name: rc.Name, UID: rc.UID}},
	}
	metav1.SetMetaDataLabel(&meta, appsv1.DeployerPodForDeploymentLabel, rc.Name)
	metav1.SetMetaDataAnnotation(&meta, rollout.DeploymentAnnotation, rc.Name)
	metav1.SetMetaDataAnnotation(&meta, appsv1.DeploymentConfigAnnotation, config.Name)
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		Containers: []corev1.Container{container}, RestartPolicy: corev1.RestartPolicyNever,
		ServiceAccountName: account, ActiveDeadlineSeconds: strategy.ActiveDeadlineSeconds, TerminationGracePeriodSeconds: ptr.To[int64](10),
		NodeSelector: template.NodeSelector, Affinity: affinity, Tolerations: template.Tolerations, ImagePullSecrets: template.ImagePullSecrets,
	}}
}

// imageAffinity selects nodes that have the deployer image. On any other node, the kubelet would
// try to pull the image, which is not in any registry, and would retry only after ten seconds.
func imageAffinity() *corev1.Affinity {
	labeled := corev1.NodeSelectorRequirement{Key: rollout.ImageLabel, Operator: corev1.NodeSelectorOpExists}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{labeled}}},
	}}}
}
