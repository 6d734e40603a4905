package attack

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// container returns a container that uses the tools image and runs a shell command. fields contains
// additional fields for the container.
func container(command string, fields ...string) string {
	return strings.Join(append([]string{"{name: main, image: " + kit.ToolsImage + ", command: [sh, -c, '" + command + "']"}, fields...), ", ") + "}"
}

func TestProbeCannotNameHostOfNode(t *testing.T) {
	s := tenants(t)
	pods := kit.CorePath(s.evil, "pods")
	const reason = "must not be set without the host's network"
	get, socket := "{httpGet: {port: 8443, host: 127.0.0.1}}", "{tcpSocket: {port: 10250, host: "+s.Address.String()+"}}"
	for _, handler := range []string{get, socket} {
		for _, field := range []string{"livenessProbe: " + handler, "readinessProbe: " + handler, "startupProbe: " + handler, "lifecycle: {postStart: " + handler + "}", "lifecycle: {preStop: " + handler + "}"} {
			s.mallory.MayNot("POST", pods+"?", "{apiVersion: v1, kind: Pod, metadata: {name: prober}, spec: {containers: ["+container("sleep infinity", field)+"]}}", reason)
			s.mallory.MayNot("POST", pods+"?", "{apiVersion: v1, kind: Pod, metadata: {name: prober}, spec: {initContainers: [{name: first, restartPolicy: Always, image: none, "+field+"}], containers: ["+container("sleep infinity")+"]}}", reason)
		}
	}
	// A Host header is allowed, because it does not change the address to which the probe connects.
	s.mallory.May("POST", pods, "{apiVersion: v1, kind: Pod, metadata: {name: honest}, spec: {containers: ["+
		container("sleep infinity", "readinessProbe: {httpGet: {port: 80, httpHeaders: [{name: Host, value: www.example.com}]}}")+"]}}")
	s.mallory.Refused("PATCH", pods+"/honest/ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"debug","image":"none","livenessProbe":{"httpGet":{"port":8443,"host":"127.0.0.1"}}}]}}`, "", denied)

	for path, kind := range map[string]string{
		kit.GroupPath("apps", s.evil, "deployments"):   "{apiVersion: apps/v1, kind: Deployment, metadata: {name: prober}, spec: {selector: {matchLabels: {app: prober}}, template: {metadata: {labels: {app: prober}}, ",
		kit.CorePath(s.evil, "replicationcontrollers"): "{apiVersion: v1, kind: ReplicationController, metadata: {name: prober}, spec: {replicas: 1, selector: {app: prober}, template: {metadata: {labels: {app: prober}}, ",
	} {
		s.mallory.May("POST", path, kind+"spec: {containers: ["+container("sleep infinity", "livenessProbe: "+get)+"]}}}}")
		s.waitReplicaFailure(s.mallory, path+"/prober", reason)
	}
}

func TestPodCannotUnmaskProc(t *testing.T) {
	s := tenants(t)
	for _, users := range []string{"hostUsers: false, ", ""} {
		s.mallory.Refused("POST", kit.CorePath(s.evil, "pods")+"?", "{apiVersion: v1, kind: Pod, metadata: {name: curious}, spec: {"+users+
			"containers: ["+container("sleep infinity", "securityContext: {procMount: Unmasked}")+"]}}", "procMount", denied)
	}
}
