package attack

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestDebugGivesAuthorOfPodNoRights makes the administrator debug an object that belongs to
// Mallory. The object has a second container that would take over the node.
func TestDebugGivesAuthorOfPodNoRights(t *testing.T) {
	s := tenants(t)
	const trap = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {
		metadata: {labels: {app: web}}, spec: {volumes: [{name: host, hostPath: {path: /}}], containers: [{name: web, image: none},
		{name: side, image: none, securityContext: {privileged: true}, volumeMounts: [{name: host, mountPath: /host}]}]}}}}`
	s.mallory.May("POST", kit.GroupPath("apps", s.evil, "deployments"), trap)
	output, err := s.TryOC("debug", "deployment/web", "-n", s.evil, "--", "true")
	if err == nil || !strings.Contains(output+err.Error(), `service account "default" is not allowed to run these pods`) {
		t.Errorf("%v: %s", err, output)
	}
	if pods := s.OC("get", "pods", "-n", s.evil, "-o", "name"); pods != "" {
		t.Errorf("the administrator's client has created %s", pods)
	}
}
