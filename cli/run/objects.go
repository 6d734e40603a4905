package run

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/distribution/reference"
	appsv1 "github.com/openshift/api/apps/v1"
	"github.com/spf13/cobra"
	kubeappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubectl/pkg/cmd/util"
)

// request describes the objects to create.
type request struct {
	command *cobra.Command

	generator, schedule string
	replicas            int32
	session             session
	podFlags            podFlags

	name      string
	labels    map[string]string
	expose    bool
	pod       corev1.PodTemplateSpec
	overrides util.OverrideOptions
}

// read reads the name, the image and the command from the arguments, and the pod's fields from
// kubectl's flags.
func (w *request) read(args []string) error {
	command, flags := w.command, w.command.Flags()
	image := util.GetFlagString(command, "image")
	switch {
	case len(args) == 0 || command.ArgsLenAtDash() == 0:
		return errors.New("NAME is required for run")
	case !reference.ReferenceRegexp.MatchString(image):
		return fmt.Errorf("Invalid image name %q: %w", image, reference.ErrReferenceInvalidFormat)
	}
	w.name = args[0]
	container := corev1.Container{Name: w.name, Image: image, ImagePullPolicy: corev1.PullPolicy(util.GetFlagString(command, "image-pull-policy"))}
	container.Stdin, container.TTY = w.session.stdin, w.session.tty
	container.StdinOnce = w.session.stdin && !w.session.leaveOpen
	if asCommand, _ := flags.GetBool("command"); asCommand {
		container.Command = args[1:]
	} else {
		container.Args = args[1:]
	}
	for _, variable := range util.GetFlagStringArray(command, "env") {
		name, value, ok := strings.Cut(variable, "=")
		if !ok || name == "" {
			return fmt.Errorf("parse --env %q: must be NAME=VALUE", variable)
		}
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	if text := util.GetFlagString(command, "port"); text != "" {
		port := intstr.Parse(text)
		if port.Type != intstr.Int {
			return fmt.Errorf("parse --port %q: must be a number", text)
		}
		container.Ports = []corev1.ContainerPort{{ContainerPort: port.IntVal}}
	}
	if privileged, _ := flags.GetBool("privileged"); privileged {
		container.SecurityContext = &corev1.SecurityContext{Privileged: &privileged}
	}
	if w.expose, _ = flags.GetBool("expose"); w.expose && len(container.Ports) == 0 {
		return errors.New("--expose needs --port, the port of the service")
	}
	annotations, _, err := util.ParsePairs(util.GetFlagStringArray(command, "annotations"), "annotations", false)
	if err != nil {
		return err
	}
	if w.labels, err = labels(util.GetFlagString(command, "labels")); err != nil {
		return err
	}
	if len(w.labels) == 0 {
		w.labels = map[string]string{"run": w.name}
	}
	w.pod = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: w.labels, Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container}, RestartPolicy: corev1.RestartPolicy(util.GetFlagString(command, "restart"))},
	}
	if err := w.podFlags.apply(&w.pod.Spec); err != nil {
		return err
	}
	w.overrides = util.OverrideOptions{Overrides: util.GetFlagString(command, "overrides"), OverrideType: util.OverrideType(util.GetFlagString(command, "override-type"))}
	return nil
}

// labels parses labels in the form NAME=VALUE,NAME=VALUE.
func labels(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	read, _, err := util.ParsePairs(strings.Split(text, ","), "labels", false)
	return read, err
}

// objects returns the objects to create. These are the workload and, if --expose is set, a service.
func (w *request) objects() ([]runtime.Object, error) {
	meta := metav1.ObjectMeta{Name: w.name, Labels: w.labels}
	var object, empty runtime.Object
	switch w.generator {
	case jobGenerator:
		object, empty = &batchv1.Job{TypeMeta: typeMeta("batch/v1", "Job"), ObjectMeta: meta, Spec: w.job()}, &batchv1.Job{}
	case cronGenerator:
		object, empty = &batchv1.CronJob{TypeMeta: typeMeta("batch/v1", "CronJob"), ObjectMeta: meta, Spec: batchv1.CronJobSpec{
			Schedule: w.schedule, ConcurrencyPolicy: batchv1.AllowConcurrent, JobTemplate: batchv1.JobTemplateSpec{Spec: w.job()},
		}}, &batchv1.CronJob{}
	case controllerGenerator:
		object, empty = &corev1.ReplicationController{TypeMeta: typeMeta("v1", "ReplicationController"), ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{
			Replicas: &w.replicas, Selector: maps.Clone(w.labels), Template: &w.pod,
		}}, &corev1.ReplicationController{}
	case deploymentGenerator:
		object, empty = &kubeappsv1.Deployment{TypeMeta: typeMeta("apps/v1", "Deployment"), ObjectMeta: meta, Spec: kubeappsv1.DeploymentSpec{
			Replicas: &w.replicas, Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(w.labels)}, Template: w.pod,
		}}, &kubeappsv1.Deployment{}
	default:
		object, empty = &appsv1.DeploymentConfig{TypeMeta: typeMeta(appsv1.GroupVersion.String(), "DeploymentConfig"), ObjectMeta: meta, Spec: appsv1.DeploymentConfigSpec{
			Replicas: w.replicas, Selector: maps.Clone(w.labels), Template: &w.pod,
		}}, &appsv1.DeploymentConfig{}
	}
	object, err := w.overrides.NewOverrider(empty).Apply(object)
	if err != nil {
		return nil, fmt.Errorf("parse --overrides: %w", err)
	}
	if !w.expose {
		return []runtime.Object{object}, nil
	}
	port := w.pod.Spec.Containers[0].Ports[0].ContainerPort
	return []runtime.Object{object, &corev1.Service{TypeMeta: typeMeta("v1", "Service"), ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Selector: maps.Clone(w.labels), Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(port)}},
	}}}, nil
}

// job returns a job spec. If the restart policy is Always, which jobs do not support, job replaces
// it with OnFailure.
func (w *request) job() batchv1.JobSpec {
	template := w.pod.DeepCopy()
	if template.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	return batchv1.JobSpec{Template: *template}
}

func typeMeta(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}
