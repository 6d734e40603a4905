package buildcontroller

import (
	"fmt"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// Where builders find what a build refers to.
const (
	secretsDir = "/var/run/secrets/openshift.io"
	configsDir = "/var/run/configs/openshift.io"
	pushDir    = secretsDir + "/push"
	pullDir    = secretsDir + "/pull"
	sourceDir  = secretsDir + "/source"
)

// mounts collects volumes with the places where the container sees them.
type mounts struct{ pod *corev1.PodSpec }

func (m mounts) add(path string, readOnly bool, source corev1.VolumeSource) {
	name := fmt.Sprintf("build-%d", len(m.pod.Volumes))
	m.pod.Volumes = append(m.pod.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	container := &m.pod.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
}

func (m mounts) secret(path string, secret *corev1.LocalObjectReference) {
	if secret != nil {
		m.add(path, true, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret.Name, DefaultMode: ptr.To[int32](0o400)}})
	}
}

// mount gives a build's pod what the build refers to: its work space, and secrets and configuration maps.
func mount(pod *corev1.Pod, build *buildv1.Build) {
	m, spec := mounts{&pod.Spec}, &build.Spec
	m.add(workspace, false, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: workspaceLimit(spec.Resources.Limits)}})
	m.secret(pushDir, spec.Output.PushSecret)
	m.secret(pullDir, pullSecret(&spec.Strategy))
	m.secret(sourceDir, spec.Source.SourceSecret)
	for i, image := range spec.Source.Images {
		m.secret(fmt.Sprintf("%s/source-image/%d", secretsDir, i), image.PullSecret)
	}
	seen := map[string]bool{}
	for _, secret := range spec.Source.Secrets {
		if path := secretsDir + "/build/" + secret.Secret.Name; !seen[path] {
			seen[path] = true
			m.secret(path, &secret.Secret)
		}
	}
	for _, config := range spec.Source.ConfigMaps {
		if path := configsDir + "/build/" + config.ConfigMap.Name; !seen[path] {
			seen[path] = true
			m.add(path, true, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: config.ConfigMap}})
		}
	}
	if custom := spec.Strategy.CustomStrategy; custom != nil {
		for _, secret := range custom.Secrets {
			m.secret(secret.MountPath, &secret.SecretSource)
		}
	}
}

// workspaceLimit is what a build may take of its node's disk for what it works on: what its limits say of ephemeral storage, otherwise 32 GiB, which is
// room for the largest source that builders take, and for images. The kubelet evicts the pod of a build that has taken more.
func workspaceLimit(limits corev1.ResourceList) *resource.Quantity {
	if limit, found := limits[corev1.ResourceEphemeralStorage]; found {
		return &limit
	}
	return resource.NewQuantity(32<<30, resource.BinarySI)
}

// pullSecret is the one of a strategy.
func pullSecret(strategy *buildv1.BuildStrategy) *corev1.LocalObjectReference {
	if secret := pullSecretOf(strategy); secret != nil {
		return *secret
	}
	return nil
}

// pullSecretOf is where a strategy has its pull secret, nil for one that pulls nothing.
func pullSecretOf(strategy *buildv1.BuildStrategy) **corev1.LocalObjectReference {
	switch {
	case strategy.DockerStrategy != nil:
		return &strategy.DockerStrategy.PullSecret
	case strategy.SourceStrategy != nil:
		return &strategy.SourceStrategy.PullSecret
	case strategy.CustomStrategy != nil:
		return &strategy.CustomStrategy.PullSecret
	}
	return nil
}
