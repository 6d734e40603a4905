package describe

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kubectldescribe "k8s.io/kubectl/pkg/describe"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/cli/objects"
)

// shownDeployments is the maximum number of deployments that are described, newest first.
const shownDeployments = 3

// deploymentConfig writes a deployment config and its latest deployments.
func deploymentConfig(p *page, c *appsv1.DeploymentConfig) error {
	p.metadata(c.ObjectMeta)
	version := "Not deployed"
	if c.Status.LatestVersion > 0 {
		version = strconv.FormatInt(c.Status.LatestVersion, 10)
	}
	p.field("Latest Version", version)
	p.list("Selector", pairs(c.Spec.Selector))
	test := ""
	if c.Spec.Test {
		test = " (test, will be scaled down between deployments)"
	}
	p.field("Replicas", strconv.Itoa(int(c.Spec.Replicas))+test)
	p.field("Triggers", strings.Join(triggers(c.Spec.Triggers), ", "))
	p.field("Strategy", c.Spec.Strategy.Type)
	hooks(p, c.Spec.Strategy)
	p.podTemplate(c.Spec.Template)
	if c.Status.Details != nil && c.Status.Details.Message != "" {
		p.field("Latest Deployment", c.Status.Details.Message)
	}
	return deployments(p, c)
}

// triggers returns the triggers of a deployment config, such as Config and Image(demo@latest,
// auto=true).
func triggers(list []appsv1.DeploymentTriggerPolicy) (texts []string) {
	for _, trigger := range list {
		if trigger.Type == appsv1.DeploymentTriggerOnImageChange && trigger.ImageChangeParams != nil {
			stream, tag, _ := strings.Cut(trigger.ImageChangeParams.From.Name, ":")
			texts = append(texts, fmt.Sprintf("Image(%s@%s, auto=%t)", stream, cmp.Or(tag, "latest"), trigger.ImageChangeParams.Automatic))
			continue
		}
		texts = append(texts, strings.TrimSuffix(string(trigger.Type), "Change"))
	}
	return texts
}

// hooks writes the lifecycle hooks of a strategy, and the image and command of a custom strategy.
func hooks(p *page, strategy appsv1.DeploymentStrategy) {
	if custom := strategy.CustomParams; custom != nil {
		p.field("  Image", custom.Image)
		p.field("  Command", strings.Join(custom.Command, " "))
	}
	if recreate := strategy.RecreateParams; recreate != nil {
		hook(p, "Pre", recreate.Pre)
		hook(p, "Mid", recreate.Mid)
		hook(p, "Post", recreate.Post)
	}
	if rolling := strategy.RollingParams; rolling != nil {
		hook(p, "Pre", rolling.Pre)
		hook(p, "Post", rolling.Post)
	}
}

func hook(p *page, phase string, h *appsv1.LifecycleHook) {
	if h == nil {
		return
	}
	if run := h.ExecNewPod; run != nil {
		p.line("  %s-deployment hook (pod type, failure policy: %s):", phase, h.FailurePolicy)
		p.field("    Container", run.ContainerName)
		p.field("    Command", strings.Join(run.Command, " "))
		return
	}
	p.line("  %s-deployment hook (tag images, failure policy: %s):", phase, h.FailurePolicy)
	for _, tag := range h.TagImages {
		p.line("    Tag:\timage for container %s to %s %s/%s", tag.ContainerName, tag.To.Kind, tag.To.Namespace, tag.To.Name)
	}
}

// podTemplate writes a pod template as kubectl does, with OpenShift's heading.
func (p *page) podTemplate(template *corev1.PodTemplateSpec) {
	var text bytes.Buffer
	kubectldescribe.DescribePodTemplate(template, kubectldescribe.NewPrefixWriter(&text))
	p.text.WriteString("Template:\n")
	p.text.WriteString(strings.TrimPrefix(text.String(), "Pod Template:\n"))
}

// deployments writes a deployment config's latest deployments, and the pod counts of the newest
// deployment.
func deployments(p *page, c *appsv1.DeploymentConfig) error {
	controllers, err := objects.List[corev1.ReplicationController](p.ctx, p.client, corev1.SchemeGroupVersion.WithResource("replicationcontrollers"), c.Namespace,
		metav1.ListOptions{LabelSelector: labels.Set{appsv1.DeploymentConfigAnnotation: c.Name}.String()})
	if err != nil {
		return err
	}
	slices.SortFunc(controllers, func(a, b corev1.ReplicationController) int { return cmp.Compare(versionOf(b), versionOf(a)) })
	for i, controller := range controllers[:min(len(controllers), shownDeployments)] {
		latest := ""
		if versionOf(controller) == c.Status.LatestVersion {
			latest = " (latest)"
		}
		p.line("\nDeployment #%d%s:", versionOf(controller), latest)
		p.field("  Name", controller.Name)
		p.field("  Created", p.ago(controller.CreationTimestamp))
		p.field("  Status", controller.Annotations[appsv1.DeploymentStatusAnnotation])
		if failure := rollout.CreateFailure(&controller); failure != "" {
			p.field("  FailedCreate", failure)
		}
		p.field("  Replicas", fmt.Sprintf("%d current / %d desired", controller.Status.Replicas, *cmp.Or(controller.Spec.Replicas, new(int32))))
		if i > 0 {
			continue
		}
		p.list("  Selector", pairs(controller.Spec.Selector))
		p.list("  Labels", pairs(controller.Labels))
		if err := podCounts(p, controller); err != nil {
			return err
		}
	}
	return nil
}

// versionOf returns a deployment's version, or 0 if the deployment has no version.
func versionOf(deployment corev1.ReplicationController) int64 {
	number, _ := strconv.ParseInt(deployment.Annotations[appsv1.DeploymentVersionAnnotation], 10, 64)
	return number
}

func podCounts(p *page, deployment corev1.ReplicationController) error {
	pods, err := objects.List[corev1.Pod](p.ctx, p.client, corev1.SchemeGroupVersion.WithResource("pods"), deployment.Namespace,
		metav1.ListOptions{LabelSelector: labels.Set(deployment.Spec.Selector).String()})
	if err != nil {
		return err
	}
	in := map[corev1.PodPhase]int{}
	for _, pod := range pods {
		in[pod.Status.Phase]++
	}
	p.field("  Pods Status", fmt.Sprintf("%d Running / %d Waiting / %d Succeeded / %d Failed",
		in[corev1.PodRunning], in[corev1.PodPending], in[corev1.PodSucceeded], in[corev1.PodFailed]))
	return nil
}
