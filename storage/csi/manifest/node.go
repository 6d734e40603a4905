package manifest

import (
	"path"

	kubeappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// daemonSet returns the DaemonSet that runs the driver. The driver's socket is in the kubelet's
// directory, its mounts propagate to the host, and the sidecar registers the driver with the
// kubelet.
func (c Config) daemonSet() runtime.Object {
	plugin := path.Join(c.Kubelet, "plugins", c.Driver)
	container := c.container()
	container.SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	container.VolumeMounts = append(container.VolumeMounts,
		corev1.VolumeMount{Name: "kubelet", MountPath: c.Kubelet, MountPropagation: ptr.To(corev1.MountPropagationBidirectional)},
		corev1.VolumeMount{Name: "devices", MountPath: "/dev"},
	)
	container.LivenessProbe = &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(healthPort)}},
		FailureThreshold: 5, InitialDelaySeconds: 10, TimeoutSeconds: 3, PeriodSeconds: 10,
	}
	sidecar := c.sidecar("node", "--csi-address=unix://"+socket, "--kubelet-registration-path="+path.Join(plugin, "csi.sock"), "--registration-dir=/registration")
	sidecar.VolumeMounts = append(sidecar.VolumeMounts, corev1.VolumeMount{Name: "registration", MountPath: "/registration"})
	spec := corev1.PodSpec{
		ServiceAccountName: c.name() + "-node",
		Tolerations:        []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:         []corev1.Container{container, sidecar},
		Volumes: []corev1.Volume{
			hostPath("socket", plugin, corev1.HostPathDirectoryOrCreate),
			hostPath("registration", path.Join(c.Kubelet, "plugins_registry"), corev1.HostPathDirectory),
			hostPath("kubelet", c.Kubelet, corev1.HostPathDirectory),
			hostPath("devices", "/dev", corev1.HostPathDirectory),
		},
	}
	return &kubeappsv1.DaemonSet{
		TypeMeta: metav1.TypeMeta{APIVersion: kubeappsv1.SchemeGroupVersion.String(), Kind: "DaemonSet"}, ObjectMeta: c.meta("-node"),
		Spec: kubeappsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: c.labels("-node")},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: c.labels("-node")}, Spec: spec},
		},
	}
}

func hostPath(name, path string, kind corev1.HostPathType) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}}
}
