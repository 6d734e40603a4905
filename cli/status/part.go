package status

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// part is an object that runs pods. It also contains the text that describes the object.
type part struct {
	// kind is the short name of the object's resource, such as dc. verb describes what the object
	// does with its images.
	kind, verb string
	object     metav1.ObjectMeta
	// template is the pod template. images contains a text for each image in the template. The text
	// ends with an arrow if a build config in this project builds the image.
	template corev1.PodTemplateSpec
	images   []string
	// below contains the lines to print below the object, without indentation.
	below []string
}

// parts returns all objects that run pods, in OpenShift 3's order.
func (v *view) parts() (all []part) {
	s := v.state
	for _, config := range s.Configs {
		all = append(all, v.config(config))
	}
	for _, deployment := range s.Deployments {
		p := part{kind: "deployment", verb: "deploys", object: deployment.ObjectMeta, template: deployment.Spec.Template}
		for _, set := range slices.Backward(s.ReplicaSets) {
			if metav1.IsControlledBy(&set, &deployment) && set.Status.Replicas > 0 {
				p.below = append(p.below, fmt.Sprintf("deployment #%s running for %s - %s", cmp.Or(set.Annotations["deployment.kubernetes.io/revision"], "1"),
					v.since(set.CreationTimestamp), v.count(s.podsOf(&set), cmp.Or(set.Spec.Replicas, new(int32)))))
			}
		}
		all = append(all, p)
	}
	for _, set := range s.StatefulSets {
		all = append(all, part{kind: "statefulset", verb: "manages", object: set.ObjectMeta, template: set.Spec.Template,
			below: []string{fmt.Sprintf("created %s ago - %s", v.since(set.CreationTimestamp), v.count(s.podsOf(&set), cmp.Or(set.Spec.Replicas, new(int32))))}})
	}
	for _, set := range s.DaemonSets {
		desired := set.Status.DesiredNumberScheduled
		all = append(all, part{kind: "daemonset", verb: "manages", object: set.ObjectMeta, template: set.Spec.Template,
			below: []string{fmt.Sprintf("generation #%d running for %s - %s", set.Generation, v.since(set.CreationTimestamp), v.count(s.podsOf(&set), &desired))}})
	}
	for _, controller := range s.Controllers {
		if controller.Spec.Template == nil || controller.Annotations[appsv1.DeploymentConfigAnnotation] != "" {
			continue
		}
		all = append(all, part{kind: "rc", verb: "runs", object: controller.ObjectMeta, template: *controller.Spec.Template,
			below: []string{fmt.Sprintf("rc/%s created %s ago - %s", controller.Name, v.since(controller.CreationTimestamp), v.count(s.podsOf(&controller), cmp.Or(controller.Spec.Replicas, new(int32))))}})
	}
	for _, set := range s.ReplicaSets {
		if owned(&set) {
			continue
		}
		all = append(all, part{kind: "rs", verb: "runs", object: set.ObjectMeta, template: set.Spec.Template,
			below: []string{fmt.Sprintf("rs/%s created %s ago - %s", set.Name, v.since(set.CreationTimestamp), v.count(s.podsOf(&set), cmp.Or(set.Spec.Replicas, new(int32))))}})
	}
	for _, pod := range s.Pods {
		if owned(&pod) || pod.Annotations[buildv1.BuildAnnotation] != "" || pod.Labels[appsv1.DeployerPodForDeploymentLabel] != "" {
			continue
		}
		all = append(all, part{kind: "pod", verb: "runs", object: pod.ObjectMeta, template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}})
	}
	for i := range all {
		if all[i].images == nil {
			for _, container := range all[i].template.Spec.Containers {
				all[i].images = append(all[i].images, container.Image)
			}
		}
	}
	return all
}

// config returns the part for a deployment config. It describes the images, the builds of these
// images, and the deployments.
func (v *view) config(config appsv1.DeploymentConfig) part {
	p := part{kind: "dc", verb: "deploys", object: config.ObjectMeta}
	if config.Spec.Template != nil {
		p.template = *config.Spec.Template
	}
	triggered := map[string]bool{}
	for _, trigger := range config.Spec.Triggers {
		if trigger.ImageChangeParams == nil {
			continue
		}
		from := trigger.ImageChangeParams.From
		image := v.tag(config.Namespace, from)
		builders := v.state.buildersOf(config.Namespace, from)
		if len(builders) > 0 {
			image += " <-"
		}
		p.images = append(p.images, image)
		for _, builder := range builders {
			v.shown["bc/"+builder.Namespace+"/"+builder.Name] = true
			p.below = append(p.below, v.buildLines(builder)...)
		}
		for _, name := range trigger.ImageChangeParams.ContainerNames {
			triggered[name] = true
		}
	}
	for _, container := range p.template.Spec.Containers {
		if !triggered[container.Name] {
			p.images = append(p.images, complete(container.Image))
		}
	}
	p.below = append(p.below, v.deploymentLines(config)...)
	return p
}

// complete returns an image's name with its registry and tag, as OpenShift 3.11 prints it for
// deployment configs. For example, it returns registry.example.com/app:latest for
// registry.example.com/app. If it cannot parse a name, it returns the name unchanged.
func complete(image string) string {
	parsed, err := record.ParseReference(image)
	switch {
	case err != nil:
		return image
	case parsed.Digest != "":
		return parsed.AtDigest(parsed.Digest)
	}
	return parsed.Name() + ":" + cmp.Or(parsed.Tag, "latest")
}

// deploymentLines returns a line for each of the three latest deployments of a deployment config.
// If there are no deployments, it returns a line that explains what the first deployment is waiting
// for.
func (v *view) deploymentLines(config appsv1.DeploymentConfig) (lines []string) {
	all := v.state.deploymentsOf(config)
	if len(all) == 0 {
		on := ""
		for _, trigger := range config.Spec.Triggers {
			if trigger.ImageChangeParams != nil && trigger.ImageChangeParams.LastTriggeredImage == "" {
				on = "image or "
			}
		}
		return []string{fmt.Sprintf("deployment #1 waiting on %supdate", on)}
	}
	const maximum = 3
	for _, controller := range all[:min(len(all), maximum)] {
		lines = append(lines, v.deploymentLine(controller))
	}
	return lines
}

func (v *view) deploymentLine(controller corev1.ReplicationController) string {
	since := v.since(controller.CreationTimestamp)
	pods := v.count(v.state.podsOf(&controller), cmp.Or(controller.Spec.Replicas, new(int32)))
	text := fmt.Sprintf("deployment #%d ", versionOf(controller))
	switch appsv1.DeploymentStatus(controller.Annotations[appsv1.DeploymentStatusAnnotation]) {
	case appsv1.DeploymentStatusComplete:
		text += "deployed " + since + " ago"
		if controller.Status.Replicas == 0 && *cmp.Or(controller.Spec.Replicas, new(int32)) == 0 {
			return text
		}
		return text + " - " + pods
	case appsv1.DeploymentStatusFailed:
		text += "failed " + since + " ago"
		if reason := controller.Annotations[appsv1.DeploymentStatusReasonAnnotation]; reason != "" {
			text += ": " + reason
		}
		return text
	case appsv1.DeploymentStatusRunning:
		text += "running for " + since + " - " + pods
		if failure := rollout.CreateFailure(&controller); failure != "" {
			text += ": " + failure
		}
		return text
	}
	text += "pending " + since + " ago"
	if failure := rollout.CreateFailure(&controller); failure != "" {
		text += ": " + failure
	}
	return text
}

// buildLines returns a line for a build config. It also returns indented lines for the build
// config's unfinished builds, and for its latest build if that build did not succeed.
func (v *view) buildLines(config buildv1.BuildConfig) []string {
	lines := []string{strings.TrimRight(v.name("bc", config.Namespace, config.Name)+" "+v.builds(config), " ")}
	builds := v.state.buildsOf(config)
	if len(builds) == 0 {
		return append(lines, "  not built yet")
	}
	for _, build := range builds {
		finished := build.Status.CompletionTimestamp != nil
		if finished && build.Name != builds[0].Name {
			break
		}
		if !finished || build.Status.Phase != buildv1.BuildPhaseComplete {
			lines = append(lines, "  "+v.buildLine(build))
		}
	}
	return lines
}

// builds describes a build config's builds, such as "source builds URL on istag/ruby:2.5".
func (v *view) builds(config buildv1.BuildConfig) string {
	kind, from := map[buildv1.BuildStrategyType]string{
		buildv1.SourceBuildStrategyType: "source", buildv1.DockerBuildStrategyType: "docker",
		buildv1.CustomBuildStrategyType: "custom", buildv1.JenkinsPipelineBuildStrategyType: "pipeline",
	}[config.Spec.Strategy.Type], (*corev1.ObjectReference)(nil)
	switch s := config.Spec.Strategy; {
	case s.SourceStrategy != nil:
		from = &s.SourceStrategy.From
	case s.DockerStrategy != nil:
		from = s.DockerStrategy.From
	case s.CustomStrategy != nil:
		from = &s.CustomStrategy.From
	}
	text := kind + " builds"
	switch source := config.Spec.Source; {
	case source.Git != nil:
		text += " " + source.Git.URI
		if source.Git.Ref != "" {
			text += "#" + source.Git.Ref
		}
	case source.Binary != nil:
		text += " uploaded code"
	case source.Dockerfile != nil:
		text += " from a Dockerfile"
	}
	if from != nil {
		text += " on " + v.tag(config.Namespace, *from)
	}
	return text
}

func (v *view) buildLine(build buildv1.Build) string {
	text := "build #" + cmp.Or(build.Annotations[buildv1.BuildNumberAnnotation], build.Name) + " "
	switch build.Status.Phase {
	case buildv1.BuildPhaseRunning:
		return text + "running for " + v.since(*cmp.Or(build.Status.StartTimestamp, &build.CreationTimestamp))
	case buildv1.BuildPhaseNew, buildv1.BuildPhasePending:
		text += strings.ToLower(string(build.Status.Phase)) + " for " + v.since(build.CreationTimestamp)
		if build.Status.Phase == buildv1.BuildPhaseNew && build.Status.Message != "" {
			text += ": " + build.Status.Message
		}
		return text
	}
	return text + strings.ToLower(string(build.Status.Phase)) + " " + v.since(*cmp.Or(build.Status.CompletionTimestamp, &build.CreationTimestamp)) + " ago"
}

// count returns a text with the number of ready pods, the desired number if it is different, and
// the number of container restarts.
func (v *view) count(pods []corev1.Pod, desired *int32) string {
	ready, restarts := int32(0), int32(0)
	for _, pod := range pods {
		if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			ready++
		}
		for _, container := range pod.Status.ContainerStatuses {
			restarts += container.RestartCount
		}
	}
	text := plural(int(ready), "pod")
	if ready != *desired {
		text = fmt.Sprintf("%d/%s", ready, plural(int(*desired), "pod"))
	}
	if restarts > 0 {
		text += fmt.Sprintf(" (warning: %s)", plural(int(restarts), "restart"))
	}
	return text
}

// since returns the time since t as text.
func (v *view) since(t metav1.Time) string {
	return strings.ToLower(units.HumanDuration(v.now.Sub(t.Time).Round(time.Second)))
}

// plural formats a number with a noun, which it puts in the plural if necessary.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// versionOf returns a deployment's version, or 0 if the deployment has no version.
func versionOf(deployment corev1.ReplicationController) int64 {
	number, _ := strconv.ParseInt(deployment.Annotations[appsv1.DeploymentVersionAnnotation], 10, 64)
	return number
}

// tagName returns the name of an image stream tag or image. If name is the name of an image stream,
// it appends :latest.
func tagName(name string) string {
	if strings.ContainsAny(name, ":@") {
		return name
	}
	return name + ":latest"
}
