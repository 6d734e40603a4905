package buildcontroller

import (
	"fmt"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/buildpod"
)

// Mount paths of the credential secrets in the container.
const (
	pushDir   = buildpod.SecretsDir + "/" + buildpod.PushSecret
	pullDir   = buildpod.SecretsDir + "/" + buildpod.PullSecret
	sourceDir = buildpod.SecretsDir + "/" + buildpod.SourceSecret
)

// mounts adds volumes to a pod, and their mounts to the pod's container.
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

// mount adds a build's volumes to its pod: the work directory, secrets and config maps.
func mount(pod *corev1.Pod, build *buildv1.Build) {
	m, spec := mounts{&pod.Spec}, &build.Spec
	m.add(buildpod.WorkDir, false, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: workLimit(spec.Resources.Limits)}})
	m.secret(pushDir, spec.Output.PushSecret)
	m.secret(pullDir, pullSecret(&spec.Strategy))
	m.secret(sourceDir, spec.Source.SourceSecret)
	for i, image := range spec.Source.Images {
		m.secret(buildpod.SecretsDir+"/"+buildpod.ImageSecret(i), image.PullSecret)
	}
	seen := map[string]bool{}
	for _, secret := range spec.Source.Secrets {
		if path := buildpod.SecretsDir + "/" + buildpod.Input(secret.Secret.Name); !seen[path] {
			seen[path] = true
			m.secret(path, &secret.Secret)
		}
	}
	for _, config := range spec.Source.ConfigMaps {
		if path := buildpod.ConfigMapsDir + "/" + buildpod.Input(config.ConfigMap.Name); !seen[path] {
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

// workLimit returns the maximum size of the work directory. This is the ephemeral storage limit or,
// by default, 32 GiB, which is enough for images and the largest source that builders accept. If a
// build exceeds the limit, the kubelet evicts its pod.
func workLimit(limits corev1.ResourceList) *resource.Quantity {
	if limit, ok := limits[corev1.ResourceEphemeralStorage]; ok {
		return &limit
	}
	return resource.NewQuantity(32<<30, resource.BinarySI)
}

// pullSecret returns a strategy's pull secret, or nil.
func pullSecret(strategy *buildv1.BuildStrategy) *corev1.LocalObjectReference {
	if secret := pullSecretOf(strategy); secret != nil {
		return *secret
	}
	return nil
}

// pullSecretOf returns a pointer to a strategy's pull secret field, or nil if the strategy does not
// pull an image.
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
