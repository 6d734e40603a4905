package set

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/polymorphichelpers"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// definition contains the triggers of an object: a deployment config, a build config or a workload.
type definition struct {
	// name identifies the object in the form TYPE/NAME, such as deploymentconfigs/web.
	name, namespace string
	// config means that a change to the object's spec is a trigger. alwaysConfig means that this
	// trigger cannot be disabled.
	config, alwaysConfig bool
	images               []imageTrigger
	hooks                []hookTrigger
	takesHooks           bool
	refusal              string // why webhooks are not supported; empty means the default reason
	// checkContainers returns an error if the object does not support setting the image in
	// containers, a comma-separated list of names.
	checkContainers func(containers string) error
	// store writes the triggers to the object.
	store func(*definition) error
}

// imageTrigger is a trigger that starts when an image stream tag gets a new image.
type imageTrigger struct {
	from       corev1.ObjectReference
	containers string // comma-separated names
	auto       bool
	// absent means that the build config has no trigger for the tag in its build strategy. An
	// absent trigger is listed as disabled. It is stored only if it is enabled.
	absent bool

	// deployment, build and annotation contain the original trigger, including its last image. At
	// most one of them is set. All are nil for a new trigger.
	deployment *appsv1.DeploymentTriggerImageChangeParams
	build      *buildv1.ImageChangeTrigger
	annotation map[string]any
}

// hookTrigger is a webhook trigger.
type hookTrigger struct {
	kind buildv1.BuildTriggerType
	hook *buildv1.WebHookTrigger
}

// word returns the name that list prints for the webhook's type.
func (h hookTrigger) word() string {
	if h.kind == buildv1.GenericWebHookBuildTriggerType {
		return "webhook"
	}
	return strings.ToLower(string(h.kind))
}

// secret returns the secret in the webhook's URL. If the secret is stored in a Secret, it returns
// secret/NAME instead.
func (h hookTrigger) secret() string {
	if h.hook.SecretReference != nil {
		return "secret/" + h.hook.SecretReference.Name
	}
	return h.hook.Secret
}

// triggersOf returns an object's triggers.
func triggersOf(object runtime.Object) (*definition, error) {
	switch o := object.(type) {
	case *appsv1.DeploymentConfig:
		return deploymentTriggers(o), nil
	case *buildv1.BuildConfig:
		return buildTriggers(o), nil
	}
	return annotationTriggers(object)
}

// hasContainers returns a function that checks a comma-separated list of names. The function
// returns an error unless all names are names of containers in the object's pods.
func hasContainers(object runtime.Object) func(string) error {
	return func(names string) error {
		if names == "" {
			return errors.New("you must specify --containers when setting --from-image")
		}
		_, err := polymorphichelpers.UpdatePodSpecForObjectFn(object, func(spec *corev1.PodSpec) error {
			var missing, all []string
			for name := range strings.SplitSeq(names, ",") {
				if _, has := containerField(spec, name); !has {
					missing = append(missing, name)
				}
			}
			for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
				all = append(all, container.Name)
			}
			if len(missing) > 0 {
				return fmt.Errorf("not all container names exist: %s (accepts: %s)", strings.Join(missing, ", "), strings.Join(all, ", "))
			}
			return nil
		})
		return err
	}
}

// containerField returns the name of the pod spec field that contains a container, and reports
// whether the container exists.
func containerField(spec *corev1.PodSpec, name string) (field string, exists bool) {
	named := func(c corev1.Container) bool { return c.Name == name }
	switch {
	case slices.ContainsFunc(spec.Containers, named):
		return "containers", true
	case slices.ContainsFunc(spec.InitContainers, named):
		return "initContainers", true
	}
	return "", false
}

func deploymentTriggers(dc *appsv1.DeploymentConfig) *definition {
	d := &definition{
		name: "deploymentconfigs/" + dc.Name, namespace: dc.Namespace, checkContainers: hasContainers(dc), refusal: "deployment configs do not support",
	}
	for _, trigger := range dc.Spec.Triggers {
		d.config = d.config || trigger.Type == appsv1.DeploymentTriggerOnConfigChange
		if params := trigger.ImageChangeParams; params != nil {
			d.images = append(d.images, imageTrigger{
				from: params.From, containers: strings.Join(params.ContainerNames, ","), auto: params.Automatic, deployment: params,
			})
		}
	}
	d.store = func(d *definition) error {
		all := appsv1.DeploymentTriggerPolicies{} // a nil list would be omitted from the request
		if d.config {
			all = append(all, appsv1.DeploymentTriggerPolicy{Type: appsv1.DeploymentTriggerOnConfigChange})
		}
		for _, trigger := range d.images {
			params := trigger.deployment
			if params == nil {
				params = &appsv1.DeploymentTriggerImageChangeParams{From: trigger.from, ContainerNames: strings.Split(trigger.containers, ",")}
			}
			params.Automatic = trigger.auto
			all = append(all, appsv1.DeploymentTriggerPolicy{Type: appsv1.DeploymentTriggerOnImageChange, ImageChangeParams: params})
		}
		dc.Spec.Triggers = all
		return nil
	}
	return d
}

func buildTriggers(bc *buildv1.BuildConfig) *definition {
	d := &definition{name: "buildconfigs/" + bc.Name, namespace: bc.Namespace, takesHooks: true}
	d.checkContainers = func(containers string) error {
		if containers != "" {
			return errors.New("a build config has no containers: remove --containers")
		}
		return nil
	}
	for i := range bc.Spec.Triggers {
		trigger := &bc.Spec.Triggers[i]
		d.config = d.config || trigger.Type == buildv1.ConfigChangeBuildTriggerType
		for kind, hook := range hooksOf(trigger) {
			if *hook != nil {
				d.hooks = append(d.hooks, hookTrigger{kind, *hook})
			}
		}
		if change := trigger.ImageChange; change != nil {
			read := imageTrigger{auto: !change.Paused, build: change}
			if from := instantiate.Watched(bc, change); from != nil {
				read.from = *from
			}
			d.images = append(d.images, read)
		}
	}
	from := instantiate.Watched(bc, &buildv1.ImageChangeTrigger{})
	watched := func(t imageTrigger) bool { return instantiate.Same(bc.Namespace, from, &t.from) }
	if from != nil && !slices.ContainsFunc(d.images, watched) {
		d.images = append(d.images, imageTrigger{from: *from, absent: true})
	}
	d.store = func(d *definition) error {
		bc.Spec.Triggers = buildPolicies(bc, d)
		return nil
	}
	return d
}

// buildPolicies returns a build config's triggers. It omits the tag in the trigger for the build
// strategy's own tag.
func buildPolicies(bc *buildv1.BuildConfig, d *definition) []buildv1.BuildTriggerPolicy {
	all := []buildv1.BuildTriggerPolicy{}
	for _, hook := range d.hooks {
		policy := buildv1.BuildTriggerPolicy{Type: hook.kind}
		*hooksOf(&policy)[hook.kind] = hook.hook
		all = append(all, policy)
	}
	if d.config {
		all = append(all, buildv1.BuildTriggerPolicy{Type: buildv1.ConfigChangeBuildTriggerType})
	}
	for _, trigger := range d.images {
		if trigger.absent && !trigger.auto {
			continue
		}
		change := trigger.build
		if change == nil {
			change = &buildv1.ImageChangeTrigger{From: &trigger.from}
			if instantiate.Same(bc.Namespace, instantiate.From(&bc.Spec.Strategy), &trigger.from) {
				change.From = nil
			}
		}
		change.Paused = !trigger.auto
		all = append(all, buildv1.BuildTriggerPolicy{Type: buildv1.ImageChangeBuildTriggerType, ImageChange: change})
	}
	return all
}

// hooksOf returns pointers to a trigger's webhook fields, keyed by trigger type.
func hooksOf(trigger *buildv1.BuildTriggerPolicy) map[buildv1.BuildTriggerType]**buildv1.WebHookTrigger {
	return map[buildv1.BuildTriggerType]**buildv1.WebHookTrigger{
		buildv1.GitHubWebHookBuildTriggerType: &trigger.GitHubWebHook, buildv1.GitLabWebHookBuildTriggerType: &trigger.GitLabWebHook,
		buildv1.BitbucketWebHookBuildTriggerType: &trigger.BitbucketWebHook, buildv1.GenericWebHookBuildTriggerType: &trigger.GenericWebHook,
	}
}
