// Package manifest creates the objects that deploy a CSI driver, as the document "CSI Volume
// Plugins in Kubernetes" recommends. They include a Deployment that runs the driver's controller
// and a DaemonSet that runs the driver on each node. Each pod has one Slipway sidecar instead of
// the separate community sidecars. The RBAC rules cover only the features in use.
package manifest

import (
	"errors"
	"fmt"
	"path"

	kubeappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/storage/csi/driver"
)

// Config describes the deployment.
type Config struct {
	// Driver is the driver's name, as reported by GetPluginInfo. Image and Arguments configure the
	// driver's container. The driver must serve CSI at the path in the CSI_ENDPOINT environment
	// variable.
	Driver, Image string
	Arguments     []string
	// SidecarImage is the Slipway image.
	SidecarImage string
	// Namespace is the namespace of the namespaced objects. It must exist.
	Namespace string
	// Kubelet is the kubelet's root directory on the nodes.
	Kubelet string
	// Object contains the CSIDriver fields that the driver does not report: its lifecycle modes,
	// whether it needs pod information on mount, and its policy for a pod's fsGroup.
	Object storagev1.CSIDriverSpec
	// Replicas is the number of controller replicas. One replica is the leader. The default is 2.
	Replicas int32
	// NodeSelector selects the nodes on which the controllers run, such as infrastructure nodes.
	NodeSelector map[string]string
	// DisabledFeatures lists the features that are not used: attach, provision, resize, snapshot,
	// secrets. Their RBAC rules are omitted.
	DisabledFeatures []Feature
	// SecretsNamespace restricts access to secrets to one namespace. If it is empty, secrets in all
	// namespaces are accessible.
	SecretsNamespace string
}

// Feature is a controller feature.
type Feature string

// Features whose RBAC rules can be omitted.
const (
	Attach    Feature = "attach"
	Provision Feature = "provision"
	Resize    Feature = "resize"
	Snapshot  Feature = "snapshot"
	Secrets   Feature = "secrets"
)

// Features returns all features.
func Features() []Feature { return []Feature{Attach, Provision, Resize, Snapshot, Secrets} }

// Objects returns the objects in the order in which to apply them.
func (c Config) Objects() ([]runtime.Object, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Replicas == 0 {
		c.Replicas = 2
	}
	objects := []runtime.Object{c.csiDriver()}
	objects = append(objects, c.rbacObjects()...)
	return append(objects, c.deployment(), c.daemonSet()), nil
}

func (c Config) check() error {
	var errs []error
	errs = append(errs, driver.CheckName(c.Driver))
	for name, value := range map[string]string{"driver image": c.Image, "Slipway image": c.SidecarImage, "namespace": c.Namespace} {
		if value == "" {
			errs = append(errs, fmt.Errorf("deploy CSI driver: the %s is missing", name))
		}
	}
	if !path.IsAbs(c.Kubelet) {
		errs = append(errs, fmt.Errorf("deploy CSI driver: the kubelet's directory %q is not an absolute path", c.Kubelet))
	}
	return errors.Join(errs...)
}

// uses reports whether a feature is enabled.
func (c Config) uses(feature Feature) bool {
	for _, disabled := range c.DisabledFeatures {
		if disabled == feature {
			return false
		}
	}
	return true
}

// name returns the base name of the objects.
func (c Config) name() string { return driver.SanitizeName(c.Driver) }

func (c Config) meta(suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: c.name() + suffix, Namespace: c.Namespace, Labels: c.labels(suffix)}
}

func (c Config) clusterMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "csi:" + c.Driver, Labels: map[string]string{"app": c.name()}}
}

func (c Config) labels(suffix string) map[string]string {
	return map[string]string{"app": c.name() + suffix}
}

func (c Config) csiDriver() runtime.Object {
	spec, attach := c.Object, c.uses(Attach)
	spec.AttachRequired = &attach
	return &storagev1.CSIDriver{
		TypeMeta:   metav1.TypeMeta{APIVersion: storagev1.SchemeGroupVersion.String(), Kind: "CSIDriver"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Driver},
		Spec:       spec,
	}
}

const (
	socketDir  = "/csi"
	socket     = socketDir + "/csi.sock"
	healthPort = 9808
)

// deployment returns the Deployment that runs the driver's controller. The driver and the sidecar
// share the socket through a volume of the pod.
func (c Config) deployment() runtime.Object {
	sidecar := c.sidecar("controller", "--csi-address=unix://"+socket, "--leader-election", "--leader-election-namespace="+c.Namespace,
		// The manifest contains the CSIDriver object, so the sidecar must not manage it. That
		// object does not enable storage capacity tracking, so the sidecar must not track capacity.
		"--driver-object=false", "--capacity-namespace=")
	spec := corev1.PodSpec{
		ServiceAccountName: c.name() + "-controller", NodeSelector: c.NodeSelector,
		Containers: []corev1.Container{c.container(), sidecar},
		Volumes:    []corev1.Volume{{Name: "socket", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	return &kubeappsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: kubeappsv1.SchemeGroupVersion.String(), Kind: "Deployment"}, ObjectMeta: c.meta("-controller"),
		Spec: kubeappsv1.DeploymentSpec{
			Replicas: &c.Replicas, Selector: &metav1.LabelSelector{MatchLabels: c.labels("-controller")},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: c.labels("-controller")}, Spec: spec},
		},
	}
}

// container returns the driver's container.
func (c Config) container() corev1.Container {
	return corev1.Container{
		Name: "driver", Image: c.Image, Args: c.Arguments,
		Env: []corev1.EnvVar{
			{Name: "CSI_ENDPOINT", Value: "unix://" + socket},
			{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "socket", MountPath: socketDir}},
	}
}

// sidecar returns the Slipway container. The kubelet restarts the driver if the liveness probe
// fails.
func (c Config) sidecar(arguments ...string) corev1.Container {
	return corev1.Container{
		Name: "slipway", Image: c.SidecarImage, Command: []string{"slipway", "csi"},
		Args:         append(arguments, fmt.Sprintf("--http-endpoint=:%d", healthPort)),
		Ports:        []corev1.ContainerPort{{Name: "healthz", ContainerPort: healthPort}},
		VolumeMounts: []corev1.VolumeMount{{Name: "socket", MountPath: socketDir}},
	}
}
