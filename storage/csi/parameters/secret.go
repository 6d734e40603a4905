package parameters

import (
	"context"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
)

// Values holds the values of the variables in the templates for a secret's name and namespace, such
// as "pvc.name" in "${pvc.name}".
type Values struct{ Name, Namespace map[string]string }

// ClaimValues returns the variables for a claim's volume. The claim's annotations, which a user can
// set, can determine the secret's name but not its namespace.
func ClaimValues(volume string, claim *corev1.PersistentVolumeClaim) Values {
	namespace := map[string]string{"pv.name": volume, "pvc.namespace": claim.Namespace}
	name := map[string]string{"pv.name": volume, "pvc.namespace": claim.Namespace, "pvc.name": claim.Name}
	for key, value := range claim.Annotations {
		name["pvc.annotations['"+key+"']"] = value
	}
	return Values{Name: name, Namespace: namespace}
}

// Secret returns the secret that the parameters select for an operation, or nil.
func Secret(params map[string]string, operation Operation, values Values) (*corev1.SecretReference, error) {
	selected, err := selectKey(params, operation)
	if err != nil || selected == (key{}) {
		return nil, err
	}
	name, err := expand(selected.name, params[selected.name], values.Name, validation.IsDNS1123Subdomain)
	if err != nil {
		return nil, err
	}
	namespace, err := expand(selected.namespace, params[selected.namespace], values.Namespace, validation.IsDNS1123Label)
	if err != nil {
		return nil, err
	}
	return &corev1.SecretReference{Name: name, Namespace: namespace}, nil
}

// selectKey returns the pair of parameters that is set. It returns an error if both pairs are set,
// or if only one parameter of a pair is set.
func selectKey(params map[string]string, operation Operation) (key, error) {
	var keys []key
	for _, k := range []key{operation.key(), deprecatedKeys[operation]} {
		name, namespace := params[k.name] != "", params[k.namespace] != ""
		if name != namespace {
			return key{}, fmt.Errorf("read parameters: set both %q and %q to select a secret, or neither", k.name, k.namespace)
		}
		if name {
			keys = append(keys, k)
		}
	}
	switch len(keys) {
	case 0:
		return key{}, nil
	case 1:
		return keys[0], nil
	default:
		return key{}, fmt.Errorf("read parameters: both %q and %q select a secret; remove the deprecated key %q", keys[0].name, keys[1].name, keys[1].name)
	}
}

// expand expands a template and validates the result.
func expand(parameter, template string, values map[string]string, check func(string) []string) (string, error) {
	var unknown []string
	result := os.Expand(template, func(token string) string {
		value, ok := values[token]
		if !ok {
			unknown = append(unknown, "${"+token+"}")
		}
		return value
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("read parameter %q: %s has no value in this context", parameter, strings.Join(unknown, ", "))
	}
	if messages := check(result); len(messages) > 0 {
		return "", fmt.Errorf("read parameter %q: %q is not a valid name: %s", parameter, result, strings.Join(messages, "; "))
	}
	return result, nil
}

// Fetch reads a secret and returns its data as strings, in the form passed to the driver. It
// returns nil if reference is nil.
func Fetch(ctx context.Context, client kubernetes.Interface, reference *corev1.SecretReference) (map[string]string, error) {
	if reference == nil {
		return nil, nil
	}
	secret, err := client.CoreV1().Secrets(reference.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read secret \"%s/%s\": %w", reference.Namespace, reference.Name, err)
	}
	values := make(map[string]string, len(secret.Data))
	for name, value := range secret.Data {
		values[name] = string(value)
	}
	return values, nil
}
