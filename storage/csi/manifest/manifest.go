// Package manifest makes the objects by which a CSI driver is deployed as the document "CSI Volume Plugins in Kubernetes" recommends it: a Deployment with the
// driver's controller and a DaemonSet with the driver on each node, with one container of ours beside each in place of the separate helpers, and rights
// for no more than what the driver is used for.
package manifest

import (
	"errors"
	"fmt"
	"path"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/storage/csi/driver"
)

// Config is what is deployed.
type Config struct {
	// Driver is the driver's name, as it answers GetPluginInfo; Image its image and Arguments what its container is started with. It must serve CSI at the
	// path in the environment variable CSI_ENDPOINT.
	Driver, Image string
	Arguments     []string
	// Helper is the image of Slipway.
	Helper string
	// Namespace is where it runs; it exists.
	Namespace string
	// Kubelet is kubelet's directory on the nodes.
	Kubelet string
	// Replicas is how many controllers there are, of which one leads; 0 means 2.
	Replicas int32
	// NodeSelector holds the controllers on nodes with these labels, such as infrastructure nodes.
	NodeSelector map[string]string
	// Without are concerns that the driver is not used for, whose rights are left out: attach, provision, resize, snapshot, secrets.
	Without []Concern
	// SecretsNamespace limits the secrets that are read to one namespace; all of them when empty.
	SecretsNamespace string
}

// Concern is something that the controller does for a driver.
type Concern string

// The concerns whose rights can be left out.
const (
	Attach    Concern = "attach"
	Provision Concern = "provision"
	Resize    Concern = "resize"
	Snapshot  Concern = "snapshot"
	Secrets   Concern = "secrets"
)

// Concerns are all of them.
func Concerns() []Concern { return []Concern{Attach, Provision, Resize, Snapshot, Secrets} }

// Objects are what is to be applied, in this order.
func (c Config) Objects() ([]runtime.Object, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Replicas == 0 {
		c.Replicas = 2
	}
	objects := []runtime.Object{c.csiDriver()}
	objects = append(objects, c.rights()...)
	return append(objects, c.deployment(), c.daemonSet()), nil
}

func (c Config) check() error {
	var problems []error
	problems = append(problems, driver.CheckName(c.Driver))
	for name, value := range map[string]string{"image of the driver": c.Image, "image of Slipway": c.Helper, "namespace": c.Namespace} {
		if value == "" {
			problems = append(problems, fmt.Errorf("deploy CSI driver: the %s is not given", name))
		}
	}
	if !path.IsAbs(c.Kubelet) {
		problems = append(problems, fmt.Errorf("deploy CSI driver: kubelet's directory %q is not an absolute path", c.Kubelet))
	}
	return errors.Join(problems...)
}

// uses tells whether the driver is used for a concern.
func (c Config) uses(concern Concern) bool {
	for _, left := range c.Without {
		if left == concern {
			return false
		}
	}
	return true
}

// name is what the objects are called.
func (c Config) name() string { return driver.Sanitized(c.Driver) }

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
	attach := c.uses(Attach)
	return &storagev1.CSIDriver{
		TypeMeta:   metav1.TypeMeta{APIVersion: storagev1.SchemeGroupVersion.String(), Kind: "CSIDriver"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Driver},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: &attach},
	}
}

const (
	socketDir  = "/csi"
	socket     = socketDir + "/csi.sock"
	healthPort = 9808
)

// deployment runs the driver's controller. Driver and helper share the socket in a directory of the pod.
func (c Config) deployment() runtime.Object {
	helper := c.helper("controller", "--csi-address=unix://"+socket, "--leader-election", "--leader-election-namespace="+c.Namespace,
		"--driver-object=false", "--capacity-namespace=") // the CSIDriver object is one of these, and asks for no tracking
	spec := corev1.PodSpec{
		ServiceAccountName: c.name() + "-controller", NodeSelector: c.NodeSelector,
		Containers: []corev1.Container{c.container(), helper},
		Volumes:    []corev1.Volume{{Name: "socket", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"}, ObjectMeta: c.meta("-controller"),
		Spec: appsv1.DeploymentSpec{
			Replicas: &c.Replicas, Selector: &metav1.LabelSelector{MatchLabels: c.labels("-controller")},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: c.labels("-controller")}, Spec: spec},
		},
	}
}

// container is the driver's.
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

// helper is our container beside the driver's. Kubelet restarts the pair when the driver does not answer any more.
func (c Config) helper(arguments ...string) corev1.Container {
	return corev1.Container{
		Name: "slipway", Image: c.Helper, Command: []string{"slipway", "csi"},
		Args:         append(arguments, fmt.Sprintf("--http-endpoint=:%d", healthPort)),
		Ports:        []corev1.ContainerPort{{Name: "healthz", ContainerPort: healthPort}},
		VolumeMounts: []corev1.VolumeMount{{Name: "socket", MountPath: socketDir}},
	}
}
