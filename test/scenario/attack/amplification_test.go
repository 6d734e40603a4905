package attack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestReplicasCannotExhaustControlPlane creates sets of pods whose controllers would need terabytes
// of memory.
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

// TestVariablesCannotExhaustNode creates a pod whose environment variables would take a terabyte of
// memory in the kubelet, which has no memory limit.
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
