package buildcontroller

import (
	"fmt"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// resolveFields replaces environment variables that refer to a field of the build with the field's
// value. It keeps references to secrets and config maps.
func resolveFields(build *buildv1.Build) error {
	env := instantiate.Env(&build.Spec.Strategy)
	if env == nil {
		return nil
	}
	for i := range *env {
		variable := &(*env)[i]
		if variable.ValueFrom == nil || variable.ValueFrom.FieldRef == nil {
			continue
		}
		value, err := fieldOf(build, variable.ValueFrom.FieldRef.FieldPath)
		if err != nil {
			return &reasonError{reason: buildv1.StatusReasonUnresolvableEnvironmentVariable, message: "Unable to resolve build environment variable reference.",
				cause: fmt.Errorf("resolve variable %q: %w", variable.Name, err)}
		}
		*variable = corev1.EnvVar{Name: variable.Name, Value: value}
	}
	return nil
}

// fieldOf returns the value of a field, such as metadata.name or metadata.labels['team'].
func fieldOf(build *buildv1.Build, path string) (string, error) {
	switch path {
	case "metadata.name":
		return build.Name, nil
	case "metadata.namespace":
		return build.Namespace, nil
	case "metadata.uid":
		return string(build.UID), nil
	case "spec.serviceAccountName":
		return build.Spec.ServiceAccount, nil
	}
	for prefix, entries := range map[string]map[string]string{"metadata.labels['": build.Labels, "metadata.annotations['": build.Annotations} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			if key, ok := strings.CutSuffix(rest, "']"); ok {
				return entries[key], nil
			}
		}
	}
	return "", fmt.Errorf("a variable cannot refer to field %q of a build", path)
}
