package policy

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// kubernetesText is Kubernetes' default policy in JSON. It is embedded because oc does not link
// k8s.io/kubernetes. TestDefaultPolicyMatchesKubernetes in package kube checks the file and, with
// -update, writes it.
//
//go:embed kubernetes.json
var kubernetesText []byte

// Kubernetes contains the default policy that the Kubernetes API server creates.
type Kubernetes struct {
	Roles    []rbacv1.ClusterRole        `json:"roles"`
	Bindings []rbacv1.ClusterRoleBinding `json:"bindings"`
}

func kubernetes() (*Kubernetes, error) {
	policy := &Kubernetes{}
	if err := json.Unmarshal(kubernetesText, policy); err != nil {
		return nil, fmt.Errorf("read default Kubernetes policy: %w", err)
	}
	return policy, nil
}

// AllRoles returns a new cluster's cluster roles: the result of Roles and Kubernetes' own roles. It
// returns an error only if an embedded table is invalid.
func AllRoles() ([]rbacv1.ClusterRole, error) {
	upstream, err := kubernetes()
	if err != nil {
		return nil, err
	}
	roles, err := Roles()
	if err != nil {
		return nil, err
	}
	all := upstream.Roles
	for _, role := range roles {
		i := slices.IndexFunc(all, func(r rbacv1.ClusterRole) bool { return r.Name == role.Name })
		if i < 0 {
			all = append(all, role)
			continue
		}
		// Add the annotations because Kubernetes' roles have no descriptions, and the labels
		// because they determine which aggregated roles include the rules.
		both := &all[i]
		both.Annotations = join(both.Annotations, role.Annotations)
		both.Labels = join(both.Labels, role.Labels)
		if both.AggregationRule == nil {
			both.AggregationRule = role.AggregationRule
		}
		_, missing := validation.Covers(both.Rules, role.Rules)
		both.Rules = append(both.Rules, missing...)
	}
	return all, nil
}

// AllBindings returns a new cluster's cluster role bindings: the result of Bindings and Kubernetes'
// own bindings. It returns an error only if an embedded table is invalid.
func AllBindings() ([]rbacv1.ClusterRoleBinding, error) {
	upstream, err := kubernetes()
	if err != nil {
		return nil, err
	}
	bindings, err := Bindings()
	return append(upstream.Bindings, bindings...), err
}

// join returns the entries of both maps. If both maps have a key, the entry in second takes
// precedence.
func join(first, second map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, first)
	maps.Copy(all, second)
	return all
}
