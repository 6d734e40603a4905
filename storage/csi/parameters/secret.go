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

// Values are what the templates of a secret's name and namespace may use, such as "pvc.name" in "${pvc.name}".
type Values struct{ Name, Namespace map[string]string }

// ClaimValues are the values for a volume of a claim. An annotation of the claim, which its user writes, may choose the secret's name but
// never its namespace.
func ClaimValues(volume string, claim *corev1.PersistentVolumeClaim) Values {
	namespace := map[string]string{"pv.name": volume, "pvc.namespace": claim.Namespace}
	name := map[string]string{"pv.name": volume, "pvc.namespace": claim.Namespace, "pvc.name": claim.Name}
	for key, value := range claim.Annotations {
		name["pvc.annotations['"+key+"']"] = value
	}
	return Values{Name: name, Namespace: namespace}
}

// Secret is the secret that parameters choose for an operation, or nil when they choose none.
func Secret(all map[string]string, operation Operation, values Values) (*corev1.SecretReference, error) {
	chosen, err := choose(all, operation)
	if err != nil || chosen == (key{}) {
		return nil, err
	}
	name, err := expand(chosen.name, all[chosen.name], values.Name, validation.IsDNS1123Subdomain)
	if err != nil {
		return nil, err
	}
	namespace, err := expand(chosen.namespace, all[chosen.namespace], values.Namespace, validation.IsDNS1123Label)
	if err != nil {
		return nil, err
	}
	return &corev1.SecretReference{Name: name, Namespace: namespace}, nil
}

// choose finds the keys that are used, which must be a complete pair, and one.
func choose(all map[string]string, operation Operation) (key, error) {
	var found []key
	for _, k := range []key{operation.key(), oldKeys[operation]} {
		name, namespace := all[k.name] != "", all[k.namespace] != ""
		if name != namespace {
			return key{}, fmt.Errorf("read parameters: %q and %q must both be set to choose a secret, or none", k.name, k.namespace)
		}
		if name {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 0:
		return key{}, nil
	case 1:
		return found[0], nil
	default:
		return key{}, fmt.Errorf("read parameters: %q and %q choose a secret both; remove the older one, %q", found[0].name, found[1].name, found[1].name)
	}
}

// expand fills in a template.
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
		return "", fmt.Errorf("read parameter %q: %s has no value here", parameter, strings.Join(unknown, ", "))
	}
	if problems := check(result); len(problems) > 0 {
		return "", fmt.Errorf("read parameter %q: %q is no name: %s", parameter, result, strings.Join(problems, "; "))
	}
	return result, nil
}

// Fetch reads a secret as the driver gets it: every key, the bytes as a string. No reference gives nil.
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
