package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	routev1 "github.com/openshift/api/route/v1"
	kubeappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// levels contains the names of the severities, most severe first.
var levels = []string{"error", "warning", "info"}

// Indexes into levels.
const (
	isError = iota
	isWarning
	isInfo
)

// advice is a problem and its remedy.
type advice struct {
	level   int
	message string
	// try is the remedy: a command, a sentence, or "" if there is no remedy.
	try string
}

func countOf(list []advice, level int) (n int) {
	for _, advice := range list {
		if advice.level == level {
			n++
		}
	}
	return n
}

// writeAdvice formats the problems, most severe first.
func writeAdvice(list []advice) string {
	var out strings.Builder
	for level, name := range levels {
		if countOf(list, level) == 0 {
			continue
		}
		fmt.Fprintf(&out, "%s:\n", map[string]string{"error": "Errors", "warning": "Warnings", "info": "Info"}[name])
		for _, advice := range list {
			if advice.level != level {
				continue
			}
			fmt.Fprintf(&out, "  * %s\n", advice.message)
			if advice.try != "" {
				fmt.Fprintf(&out, "    try: %s\n", advice.try)
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// advise returns the problems in the project, most severe first. It removes repeated messages.
func (v *view) advise() []advice {
	all := slices.Concat(v.adviseRoutes(), v.adviseConfigs(), v.adviseFailures(), v.adviseBuilds(), v.adviseCycles(), v.advisePods(), v.adviseOverlaps(), v.adviseScalers(), v.adviseTemplates())
	slices.SortStableFunc(all, func(a, b advice) int { return a.level - b.level })
	return slices.CompactFunc(all, func(a, b advice) bool { return a.message == b.message })
}

// adviseRoutes finds routes whose service or port does not exist, and routes that a router rejects.
func (v *view) adviseRoutes() (all []advice) {
	for _, route := range v.state.Routes {
		name := v.name("route", route.Namespace, route.Name)
		for _, backend := range append([]routev1.RouteTargetReference{route.Spec.To}, route.Spec.AlternateBackends...) {
			at := slices.IndexFunc(v.state.Services, func(s corev1.Service) bool { return s.Namespace == route.Namespace && s.Name == backend.Name })
			target := v.name("svc", route.Namespace, backend.Name)
			if at < 0 {
				all = append(all, advice{isWarning, fmt.Sprintf("%s is supposed to route traffic to %s but %s doesn't exist.", name, target, target),
					"oc expose ... --name=" + backend.Name + ", or change the route's backend"})
				continue
			}
			if route.Spec.Port == nil && len(v.state.Services[at].Spec.Ports) > 1 {
				all = append(all, advice{isWarning, fmt.Sprintf("%s doesn't have a port specified and is routing traffic to %s which uses multiple ports.", name, target), ""})
			}
		}
		if route.Spec.TLS != nil && route.Spec.TLS.Termination == "" {
			all = append(all, advice{isError, name + " uses TLS but has no termination type.", "set spec.tls.termination to edge, passthrough or reencrypt"})
		}
		for _, ingress := range route.Status.Ingress {
			for _, condition := range ingress.Conditions {
				if condition.Type == routev1.RouteAdmitted && condition.Status == corev1.ConditionFalse {
					all = append(all, advice{isError, fmt.Sprintf("%s was not accepted by router %q: %s (%s)", name, ingress.RouterName, condition.Message, condition.Reason), ""})
				}
			}
		}
	}
	return all
}

// stream returns the image stream of a tag, or nil if the stream does not exist.
func (v *view) stream(namespace, tag string) *imagev1.ImageStream {
	name, _, _ := strings.Cut(tag, ":")
	at := slices.IndexFunc(v.state.Streams, func(s imagev1.ImageStream) bool { return s.Namespace == namespace && s.Name == name })
	if at < 0 {
		return nil
	}
	return &v.state.Streams[at]
}

// adviseConfigs finds deployment configs whose latest deployment has failed. It also finds image
// triggers that never start, because neither a build nor an import creates their image.
func (v *view) adviseConfigs() (all []advice) {
	for _, config := range v.state.Configs {
		name := v.name("dc", config.Namespace, config.Name)
		for _, trigger := range config.Spec.Triggers {
			if trigger.ImageChangeParams == nil || trigger.ImageChangeParams.LastTriggeredImage != "" {
				continue
			}
			from := trigger.ImageChangeParams.From
			namespace := cmp.Or(from.Namespace, config.Namespace)
			if namespace != v.Namespace && v.Namespace != "" {
				continue // the state contains only objects in this project
			}
			stream, tag := v.stream(namespace, from.Name), v.tag(config.Namespace, from)
			switch {
			case stream == nil:
				all = append(all, advice{isError, fmt.Sprintf("The image trigger for %s will have no effect because the image stream of %s does not exist.", name, tag),
					"oc create imagestream " + strings.Split(from.Name, ":")[0] + " -n " + namespace})
			case !hasImage(stream, from.Name) && len(v.state.buildersOf(config.Namespace, from)) == 0:
				all = append(all, advice{isWarning, fmt.Sprintf("The image trigger for %s will have no effect until %s is imported or created by a build.", name, tag),
					"oc import-image " + tagName(from.Name) + " --from=IMAGE --confirm -n " + namespace})
			}
		}
		deployments := v.state.deploymentsOf(config)
		if len(deployments) > 0 && deployments[0].Annotations[appsv1.DeploymentStatusAnnotation] == string(appsv1.DeploymentStatusFailed) {
			all = append(all, advice{isError, fmt.Sprintf("deployment #%d of %s has failed.", versionOf(deployments[0]), name), "oc logs -f dc/" + config.Name + " -n " + config.Namespace})
		}
	}
	return all
}

// adviseFailures finds controllers and builds whose pods cannot be created, for example because of
// a quota.
func (v *view) adviseFailures() (all []advice) {
	add := func(kind string, object metav1.Object, message string) {
		if message != "" {
			all = append(all, advice{isError, fmt.Sprintf("%s cannot create pods: %s", v.name(kind, object.GetNamespace(), object.GetName()), message),
				"oc describe quota,limits -n " + object.GetNamespace()})
		}
	}
	for _, rc := range v.state.Controllers {
		add("rc", &rc, rollout.CreateFailure(&rc))
	}
	for _, deployment := range v.state.Deployments {
		for _, condition := range deployment.Status.Conditions {
			if condition.Type == kubeappsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
				add("deployment", &deployment, condition.Message)
			}
		}
	}
	for _, set := range v.state.ReplicaSets {
		for _, condition := range set.Status.Conditions {
			if condition.Type == kubeappsv1.ReplicaSetReplicaFailure && condition.Status == corev1.ConditionTrue && !owned(&set) {
				add("rs", &set, condition.Message)
			}
		}
	}
	for _, build := range v.state.Builds {
		if build.Status.Phase == buildv1.BuildPhaseNew && build.Status.Reason == buildv1.StatusReasonCannotCreateBuildPod {
			add("build", &build, build.Status.Message)
		}
	}
	return all
}

// hasImage reports whether the tag in name, a tag of the stream, has an image.
func hasImage(stream *imagev1.ImageStream, name string) bool {
	_, tag, _ := strings.Cut(tagName(name), ":")
	return slices.ContainsFunc(stream.Status.Tags, func(list imagev1.NamedTagEventList) bool { return list.Tag == tag && len(list.Items) > 0 })
}

// adviseBuilds finds build configs whose output image stream does not exist, and build configs
// whose latest build has failed.
func (v *view) adviseBuilds() (all []advice) {
	for _, config := range v.state.BuildConfigs {
		name := v.name("bc", config.Namespace, config.Name)
		to := config.Spec.Output.To
		if to != nil && to.Kind == "ImageStreamTag" {
			namespace := cmp.Or(to.Namespace, config.Namespace)
			if (v.Namespace == "" || namespace == v.Namespace) && v.stream(namespace, to.Name) == nil {
				all = append(all, advice{isError, fmt.Sprintf("%s is pushing to %s, but the image stream for that tag does not exist.", name, v.tag(config.Namespace, *to)),
					"oc create imagestream " + strings.Split(to.Name, ":")[0] + " -n " + namespace})
			}
		}
		builds := v.state.buildsOf(config)
		if len(builds) > 0 && slices.Contains([]buildv1.BuildPhase{buildv1.BuildPhaseFailed, buildv1.BuildPhaseError}, builds[0].Status.Phase) {
			all = append(all, advice{isError, v.name("build", builds[0].Namespace, builds[0].Name) + " has failed.", "oc logs -f bc/" + config.Name + " -n " + config.Namespace})
		}
	}
	return all
}

// manyRestarts is the minimum number of restarts for which a container is reported as a problem.
const manyRestarts = 5

// advisePods finds containers that crash repeatedly or cannot start, and pods that cannot be
// scheduled.
func (v *view) advisePods() (all []advice) {
	for _, pod := range v.state.Pods {
		name := v.name("pod", pod.Namespace, pod.Name)
		for _, container := range pod.Status.ContainerStatuses {
			logs := "oc logs -p " + "pod/" + pod.Name + " -c " + container.Name + " -n " + pod.Namespace
			waiting := container.State.Waiting
			switch {
			case waiting != nil && waiting.Reason == "CrashLoopBackOff":
				all = append(all, advice{isError, fmt.Sprintf("container %q in %s is crash-looping", container.Name, name), logs})
			case waiting != nil && slices.Contains([]string{"ImagePullBackOff", "ErrImagePull", "InvalidImageName"}, waiting.Reason):
				all = append(all, advice{isError, fmt.Sprintf("container %q in %s cannot pull its image %s", container.Name, name, container.Image), "oc describe pod/" + pod.Name + " -n " + pod.Namespace})
			case container.RestartCount >= manyRestarts:
				all = append(all, advice{isWarning, fmt.Sprintf("container %q in %s has restarted %d times", container.Name, name, container.RestartCount), logs})
			}
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				all = append(all, advice{isWarning, name + " has no node: " + condition.Message, ""})
			}
		}
	}
	return all
}

// adviseScalers finds autoscalers whose target does not exist.
func (v *view) adviseScalers() (all []advice) {
	kinds := map[string]string{"DeploymentConfig": "dc", "Deployment": "deployment", "ReplicationController": "rc", "ReplicaSet": "rs", "StatefulSet": "statefulset"}
	parts := v.parts()
	for _, scaler := range v.state.Scalers {
		target := scaler.Spec.ScaleTargetRef
		kind, ok := kinds[target.Kind]
		if ok && !slices.ContainsFunc(parts, func(p part) bool {
			return p.kind == kind && p.object.Namespace == scaler.Namespace && p.object.Name == target.Name
		}) {
			all = append(all, advice{isError, fmt.Sprintf("%s is attempting to scale %s, which doesn't exist", v.name("hpa", scaler.Namespace, scaler.Name), v.name(kind, scaler.Namespace, target.Name)), ""})
		}
	}
	return all
}

// adviseTemplates finds volumes that refer to secrets that do not exist, and pod templates without
// probes.
func (v *view) adviseTemplates() (all []advice) {
	for _, p := range v.parts() {
		name := v.name(p.kind, p.object.Namespace, p.object.Name)
		for _, volume := range p.template.Spec.Volumes {
			secret := volume.Secret
			if secret == nil || secret.Optional != nil && *secret.Optional || !v.state.secretsKnown {
				continue
			}
			if !slices.ContainsFunc(v.state.Secrets, func(s metav1.PartialObjectMetadata) bool {
				return s.Namespace == p.object.Namespace && s.Name == secret.SecretName
			}) {
				all = append(all, advice{isWarning, fmt.Sprintf("%s is attempting to mount a missing secret %s", name, v.name("secret", p.object.Namespace, secret.SecretName)), ""})
			}
		}
		if p.kind == "pod" {
			continue
		}
		edit := "oc edit " + p.kind + "/" + p.object.Name + " -n " + p.object.Namespace
		if p.kind == "dc" && lacks(p, func(c corev1.Container) bool { return c.ReadinessProbe == nil }) {
			all = append(all, advice{isWarning, name + " has no readiness probe to verify pods are ready to accept traffic or ensure deployment is successful.", edit})
		}
		if lacks(p, func(c corev1.Container) bool { return c.LivenessProbe == nil }) {
			all = append(all, advice{isInfo, name + " has no liveness probe to verify pods are still running.", edit})
		}
	}
	return all
}

// lacks reports whether a part has containers and without returns true for each of them.
func lacks(p part, without func(corev1.Container) bool) bool {
	return len(p.template.Spec.Containers) > 0 && !slices.ContainsFunc(p.template.Spec.Containers, func(c corev1.Container) bool { return !without(c) })
}
