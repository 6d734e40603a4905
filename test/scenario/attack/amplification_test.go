package attack

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestReplicasCannotExhaustControlPlane creates workloads with so many replicas that their
// controllers would need terabytes of memory.
func TestReplicasCannotExhaustControlPlane(t *testing.T) {
	s := tenants(t)
	sets := kit.GroupPath("apps", s.evil, "statefulsets")
	set := func(name, replicas string) string {
		return "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: " + name + "}, spec: {replicas: " + replicas + `, serviceName: a,
			selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: ` + kit.ToolsImage + "}]}}}}"
	}
	const most = "2147483647"
	s.mallory.MayNot("POST", sets, set("large", most), "replicas")
	s.mallory.May("POST", sets, set("small", "0"))
	s.mallory.MayNot("PATCH", sets+"/small", `{"spec":{"replicas":`+most+`}}`, "replicas")
	s.mallory.MayNot("PATCH", sets+"/small/scale", `{"spec":{"replicas":`+most+`}}`, "replicas")
	s.mallory.May("PATCH", sets+"/small/scale", `{"spec":{"replicas":0}}`)
}

// TestVariablesCannotExhaustNode creates a pod whose environment variables would expand to a
// terabyte in the kubelet, which has no memory limit.
func TestVariablesCannotExhaustNode(t *testing.T) {
	s := tenants(t)
	var variables strings.Builder
	for i := range 40 {
		fmt.Fprintf(&variables, "{name: V%d, value: $(V%d)$(V%[2]d)}, ", i+1, i)
	}
	pod := func(variables string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {generateName: a-}, spec: {containers: [{name: main, image: " + kit.ToolsImage +
			", env: [{name: V0, value: x}, " + variables + "]}]}}"
	}
	s.mallory.MayNot("POST", kit.CorePath(s.evil, "pods"), pod(variables.String()), "could expand to more than 8 MiB")
	s.mallory.May("POST", kit.CorePath(s.evil, "pods"), pod("{name: V1, value: $(V0)$(V0)}"))
}

// TestSecretsCannotFillMemoryOfNode creates a pod that mounts the same key a thousand times. The
// kubelet writes each copy to memory that is not charged to the pod.
func TestSecretsCannotFillMemoryOfNode(t *testing.T) {
	s := tenants(t)
	var items strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&items, "{key: big, path: p%d}, ", i)
	}
	pod := func(items string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {generateName: a-}, spec: {containers: [{name: main, image: " + kit.ToolsImage +
			"}], volumes: [{name: v, secret: {secretName: big, items: [" + items + "]}}]}}"
	}
	s.mallory.MayNot("POST", kit.CorePath(s.evil, "pods"), pod(items.String()), "the limit is 128")
	s.mallory.May("POST", kit.CorePath(s.evil, "pods"), pod("{key: big, path: p}"))
}

// TestReviewsCannotExhaustAPIServer creates access reviews whose responses or evaluations would be
// thousands of times as large as the requests.
func TestReviewsCannotExhaustAPIServer(t *testing.T) {
	s := tenants(t)
	s.OC("adm", "policy", "add-scc-to-user", "anyuid", "-z", "default", "-n", s.evil)
	defer s.OC("adm", "policy", "remove-scc-from-user", "anyuid", "-z", "default", "-n", s.evil)
	review := func(accounts, bytes int) string {
		return fmt.Sprintf("{apiVersion: security.openshift.io/v1, kind: PodSecurityPolicyReview, spec: {serviceAccountNames: [%s], "+
			"template: {spec: {containers: [{name: main, image: none, args: [%s]}]}}}}", strings.Repeat("default, ", accounts), strings.Repeat("x", bytes))
	}
	reviews := kit.GroupPath("security.openshift.io", s.evil, "podsecuritypolicyreviews")
	s.mallory.Refused("POST", reviews, review(100, 1_000_000), "spec.serviceAccountNames", apierrors.IsBadRequest)
	s.mallory.Refused("POST", reviews, review(5_000, 1), "spec.serviceAccountNames", apierrors.IsBadRequest)
	s.mallory.May("POST", reviews, review(2, 1_000))
	var scopes strings.Builder
	for i := range 1_000 {
		fmt.Fprintf(&scopes, "'role:view-%d:%s', ", i, s.evil)
	}
	rules := kit.GroupPath("authorization.openshift.io", s.evil, "selfsubjectrulesreviews")
	s.mallory.Refused("POST", rules, "{apiVersion: authorization.openshift.io/v1, kind: SelfSubjectRulesReview, spec: {scopes: ["+scopes.String()+"]}}",
		"scopes: must have at most", apierrors.IsBadRequest)
}

// TestPresetsCannotMultiplyPod creates a pod with many containers. A preset would add thousands of
// environment variables to each of them.
func TestPresetsCannotMultiplyPod(t *testing.T) {
	s := tenants(t)
	var env, containers strings.Builder
	for i := range 6_000 {
		fmt.Fprintf(&env, "{name: V%d}, ", i)
	}
	for i := range 30 {
		fmt.Fprintf(&containers, "{name: c%d, image: none}, ", i)
	}
	s.mallory.May("POST", "/apis/settings.k8s.io/v1alpha1/namespaces/"+s.evil+"/podpresets",
		"{apiVersion: settings.k8s.io/v1alpha1, kind: PodPreset, metadata: {name: large}, spec: {selector: {}, env: ["+env.String()+"]}}")
	pod := s.mallory.May("POST", kit.CorePath(s.evil, "pods?"), "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: ["+containers.String()+"]}}")
	if strings.Contains(pod, "V5999") || !strings.Contains(pod, "podpreset.slipway.io/conflict") {
		t.Errorf("the pod has %d bytes", len(pod))
	}
}

// TestSecretsCannotOccupyKubelet creates a pod for which the kubelet would start thousands of
// watches, while the node's other pods wait for their secrets.
func TestSecretsCannotOccupyKubelet(t *testing.T) {
	s := tenants(t)
	pod := func(secrets int) string {
		var sources strings.Builder
		for i := range secrets {
			fmt.Fprintf(&sources, "{secretRef: {name: s%d, optional: true}}, ", i)
		}
		return "{apiVersion: v1, kind: Pod, metadata: {generateName: a-}, spec: {containers: [{name: main, image: " + kit.ToolsImage + ", envFrom: [" + sources.String() + "]}]}}"
	}
	s.mallory.MayNot("POST", kit.CorePath(s.evil, "pods"), pod(3_000), "different secrets and ConfigMaps, but the limit is 128")
	s.mallory.May("POST", kit.CorePath(s.evil, "pods"), pod(100))
}
