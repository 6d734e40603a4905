package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

func TestWhoCanListsUsersAndGroups(t *testing.T) {
	const group = "/apis/authorization.openshift.io/v1/"
	response := map[string]any{"users": []any{"alice", "bob"}, "groups": []any{}, "kind": "ResourceAccessReviewResponse", "apiVersion": "authorization.openshift.io/v1"}
	responses := map[string]any{
		"POST " + group + "namespaces/shop/localresourceaccessreviews": response, "POST " + group + "resourceaccessreviews": response,
		"GET /api":  map[string]any{"kind": "APIVersions", "versions": []any{"v1"}},
		"GET /apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}},
		"GET /api/v1": map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
			map[string]any{"name": "pods", "singularName": "pod", "kind": "Pod", "namespaced": true, "verbs": []any{"get"}},
		}},
	}
	for _, tt := range []struct{ name, args, out, failure, write string }{
		{"in the current project", "get pod", "Namespace: shop\nVerb:      get\nResource:  pods\n\nUsers:  alice\n        bob\n\nGroups: none\n", "",
			"namespaces/shop/localresourceaccessreviews"},
		{"in all projects", "get pods --all-namespaces", "Namespace: <all>\nVerb:      get\nResource:  pods\n\nUsers:  alice\n        bob\n\nGroups: none\n", "",
			"resourceaccessreviews"},
		{"one object", "get pods web", "Namespace: shop\nVerb:      get\nResource:  pods\n\nUsers:  alice\n        bob\n\nGroups: none\n", "", `"resourceName":"web"`},
		{"too few arguments", "get", "", "you must specify two or three arguments", ""},
		{"too many arguments", "get pods web db", "", "you must specify two or three arguments", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := objectstest.NewServer(t, responses)
			out, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				return newWhoCan(server.Factory(t), streams)
			}, strings.Fields(tt.args)...)
			if diff := cmp.Diff(tt.out, out); diff != "" || !strings.Contains(failure, tt.failure) || tt.failure == "" && failure != "" {
				t.Errorf("failure %q, want %q; output (-want +got):\n%s", failure, tt.failure, diff)
			}
			if writes := strings.Join(server.Writes(), "\n"); !strings.Contains(writes, tt.write) || tt.write == "" && writes != "" {
				t.Errorf("got requests %q, want %q", writes, tt.write)
			}
		})
	}
}
