package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

func TestConstraintsAreChangedForUsersAndGroups(t *testing.T) {
	const path = "/apis/security.openshift.io/v1/securitycontextconstraints/restricted"
	responses := map[string]any{"GET " + path: map[string]any{
		"apiVersion": "security.openshift.io/v1", "kind": "SecurityContextConstraints", "metadata": map[string]any{"name": "restricted"},
		"users": []any{"bob"}, "groups": []any{"dev"},
	}}
	written := func(users, groups string) []string {
		return []string{"PUT " + path + ` {"apiVersion":"security.openshift.io/v1","groups":` + groups +
			`,"kind":"SecurityContextConstraints","metadata":{"name":"restricted"},"users":` + users + `}`}
	}
	for _, tt := range []struct {
		name, subject string
		add           bool
		args          string
		out, failure  string
		writes        []string
	}{
		{"add a user", "user", true, "restricted alice", "scc \"restricted\" added to: [\"alice\"]\n", "", written(`["bob","alice"]`, `["dev"]`)},
		{"a user is added once", "user", true, "restricted bob", "scc \"restricted\" added to: [\"bob\"]\n", "", written(`["bob"]`, `["dev"]`)},
		{"add a service account of the project", "user", true, "restricted -z robot", "scc \"restricted\" added to: [\"system:serviceaccount:shop:robot\"]\n", "",
			written(`["bob","system:serviceaccount:shop:robot"]`, `["dev"]`)},
		{"remove a user", "user", false, "restricted bob", "scc \"restricted\" removed from: [\"bob\"]\n", "", written(`[]`, `["dev"]`)},
		{"add a group", "group", true, "restricted ops", "scc \"restricted\" added to groups: [\"ops\"]\n", "", written(`["bob"]`, `["dev","ops"]`)},
		{"remove a group", "group", false, "restricted dev", "scc \"restricted\" removed from groups: [\"dev\"]\n", "", written(`["bob"]`, `[]`)},
		{"no constraints", "user", true, "", "", "you must specify a scc", nil},
		{"no user", "user", true, "restricted", "", "you must specify at least one user or service account", nil},
		{"no group", "group", true, "restricted", "", "you must specify at least two arguments: <scc> <group> [group]...", nil},
		{"missing constraints", "user", true, "other alice", "", "could not find the requested resource", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := objectstest.NewServer(t, responses)
			out, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				return newSCC(server.Factory(t), streams, "test", tt.subject, tt.add)
			}, strings.Fields(tt.args)...)
			if out != tt.out || !strings.Contains(failure, tt.failure) || tt.failure == "" && failure != "" {
				t.Errorf("got %q, failure %q, want %q, failure %q", out, failure, tt.out, tt.failure)
			}
			if diff := cmp.Diff(tt.writes, server.Writes()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDryRunAndOutputOfConstraintsWriteNothing(t *testing.T) {
	for arg, want := range map[string]string{"--dry-run": `added to: ["alice"]`, "-oyaml": "- alice"} {
		server := objectstest.NewServer(t, map[string]any{"GET /apis/security.openshift.io/v1/securitycontextconstraints/restricted": map[string]any{
			"apiVersion": "security.openshift.io/v1", "kind": "SecurityContextConstraints",
		}})
		out, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
			return newSCC(server.Factory(t), streams, "test", "user", true)
		}, "restricted", "alice", arg)
		if failure != "" || !strings.Contains(out, want) || len(server.Writes()) > 0 {
			t.Errorf("%s: got %q, failure %q, writes %q", arg, out, failure, server.Writes())
		}
	}
}
