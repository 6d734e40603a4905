package rights

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestUserRequestsAndAdministersProject(t *testing.T) {
	c := kit.Shared(t)
	request(t, c, "alice", "alice-shop")
	if value := oc(c, "alice", "get", "projects", "-o", "name"); value != "project.project.openshift.io/alice-shop\n" {
		t.Errorf("alice sees %q", value)
	}
	output := oc(c, "alice", "get", "project", "alice-shop", "-o", "yaml")
	for _, part := range []string{
		"openshift.io/display-name: A shop", "openshift.io/description: Sells things", "openshift.io/requester: alice",
		"openshift.io/sa.scc.uid-range: ", "openshift.io/sa.scc.mcs: s0:c", "- openshift.io/origin", "phase: Active",
	} {
		must(t, output, part)
	}
	oc(c, "alice", "create", "configmap", "one", "-n", "alice-shop")
	must(t, expectRejected(t, c, "bob", "get", "configmaps", "-n", "alice-shop"), "Forbidden")
	if value := oc(c, "bob", "get", "projects", "-o", "name"); value != "" {
		t.Errorf("bob sees %q", value)
	}
	if _, err := tryRequest(c, "bob", "alice-shop"); err == nil || !strings.Contains(err.Error(), "AlreadyExists") {
		t.Errorf("a name that is taken: %v", err)
	}
	oc(c, "alice", "create", "rolebinding", "bob", "--clusterrole=view", "--user=bob", "-n", "alice-shop")
	must(t, expectRejected(t, c, "bob", "delete", "project", "alice-shop"), "Forbidden")
	oc(c, "alice", "delete", "project", "alice-shop", "--wait=true")
}
