package app

import (
	"errors"
	"fmt"
	"slices"

	buildv1 "github.com/openshift/api/build/v1"
	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-platform/slipway/cli/app/newapp"
)

// checkSecrets returns an error for an invalid secret name.
func (o *newApp) checkSecrets() error {
	for kind, name := range map[string]string{"source": o.request.Options.SourceSecret, "push": o.request.Options.PushSecret} {
		if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("%s secret name %q is invalid", kind, name)
		}
	}
	return nil
}

// label adds an app label, whose value is the application's name, to a template's object labels. It
// does nothing if --labels is set, or if the name is not a valid label value. It also does nothing
// if the template or one of its objects already has an app label.
func (o *newApp) label(template *templatev1.Template) error {
	const app = "app"
	name := o.request.Name
	if name == "" {
		name = template.Name
	}
	if len(o.request.Labels) > 0 || template.ObjectLabels[app] != "" || len(validation.IsValidLabelValue(name)) > 0 || name == "" {
		return nil
	}
	for _, raw := range template.Objects {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			return fmt.Errorf("read object of template %q: %w", template.Name, err)
		}
		inner, _, _ := unstructured.NestedString(object.Object, "spec", "template", "metadata", "labels", app)
		if inner != "" || object.GetLabels()[app] != "" {
			return nil
		}
	}
	if template.ObjectLabels == nil {
		template.ObjectLabels = map[string]string{}
	}
	template.ObjectLabels[app] = name
	return nil
}

// configure applies the environment variables and the source secret from the flags to one of a
// template's objects.
func (o *newApp) configure(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "DeploymentConfig", "Deployment", "ReplicationController":
		at := []string{"spec", "template", "spec", "containers"}
		containers, _, err := unstructured.NestedSlice(object.Object, at...)
		if err != nil || len(o.request.Environment) == 0 {
			return err
		}
		for _, container := range containers {
			if content, ok := container.(map[string]any); ok {
				if err := setVariables(content, o.request.Environment); err != nil {
					return err
				}
			}
		}
		return unstructured.SetNestedSlice(object.Object, containers, at...)
	case "BuildConfig":
		return o.configureBuild(object)
	}
	return nil
}

func (o *newApp) configureBuild(object *unstructured.Unstructured) error {
	if secret := o.request.Options.SourceSecret; secret != "" {
		if err := unstructured.SetNestedField(object.Object, secret, "spec", "source", "sourceSecret", "name"); err != nil {
			return err
		}
	}
	for _, strategy := range []string{"sourceStrategy", "dockerStrategy", "customStrategy", "jenkinsPipelineStrategy"} {
		content, exists, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "strategy", strategy)
		fields, ok := content.(map[string]any)
		if err != nil || !exists || !ok {
			continue // the server reports invalid objects
		}
		if err := setVariables(fields, o.request.BuildEnvironment); err != nil {
			return err
		}
	}
	return nil
}

// setVariables sets environment variables in the env field of a container or a build strategy.
func setVariables(in map[string]any, variables []corev1.EnvVar) error {
	if len(variables) == 0 {
		return nil
	}
	env, _, err := unstructured.NestedSlice(in, "env")
	if err != nil {
		return fmt.Errorf("read variables: %w", err)
	}
	for i := range variables {
		variable, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&variables[i])
		if err != nil {
			return err
		}
		at := slices.IndexFunc(env, func(item any) bool {
			existing, ok := item.(map[string]any)
			return ok && existing["name"] == variables[i].Name
		})
		if at < 0 {
			env = append(env, variable)
		} else {
			env[at] = variable
		}
	}
	return unstructured.SetNestedSlice(in, env, "env")
}

var errNoDockerBuild = errors.New("Cannot use '--build-arg' without a Docker build")

// checkArguments returns an error if there are build arguments but no build uses a Dockerfile.
func checkArguments(options newapp.BuildOptions, all []*unstructured.Unstructured) error {
	if len(options.Arguments) == 0 || slices.ContainsFunc(all, func(object *unstructured.Unstructured) bool {
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "strategy", "type")
		return object.GetKind() == "BuildConfig" && kind == string(buildv1.DockerBuildStrategyType)
	}) {
		return nil
	}
	return errNoDockerBuild
}
