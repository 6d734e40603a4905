package policy

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

func TestCanISendsTheReview(t *testing.T) {
	const group = "/apis/authorization.openshift.io/v1/"
	const local, everywhere = "POST " + group + "namespaces/shop/localsubjectaccessreviews", "POST " + group + "subjectaccessreviews"
	response := func(fields map[string]any) map[string]any {
		fields["apiVersion"], fields["kind"] = "authorization.openshift.io/v1", "SubjectAccessReviewResponse"
		return fields
	}
	allowed, denied := response(map[string]any{"allowed": true}), response(map[string]any{"allowed": false, "evaluationError": "role not found"})
	for _, tt := range []struct {
		name, args   string
		response     any
		out, failure string
		want         []string // substrings that the request must contain
	}{
		{"allowed", "get pods", allowed, "yes\n", "", []string{local, `"verb":"get"`, `"resource":"pods"`}},
		{"denied with a reason", "get pods", denied, "no - role not found\n", "", []string{local}},
		{"group and name", "update deployments.apps/scale web", allowed, "yes\n", "",
			[]string{`"resourceAPIGroup":"apps"`, `"resource":"deployments/scale"`, `"resourceName":"web"`}},
		{"path", "get /healthz", allowed, "yes\n", "", []string{`"path":"/healthz"`, `"isNonResourceURL":true`}},
		{"all projects", "get pods --all-namespaces", allowed, "yes\n", "", []string{everywhere}},
		{"other user", "get pods --user=bob --groups=dev,ops", allowed, "yes\n", "", []string{`"user":"bob"`, `"groups":["dev","ops"]`}},
		{"scopes", "get pods --scopes=user:info", allowed, "yes\n", "", []string{`"scopes":["user:info"]`}},
		{"no scopes", "get pods --ignore-scopes", allowed, "yes\n", "", []string{`"scopes":[]`}},
		{"quiet", "get pods -q", allowed, "", "", []string{local}},
		{"scopes twice", "get pods --ignore-scopes --scopes=user:info", nil, "", "--scopes and --ignore-scopes cannot be used together", nil},
		{"list with a verb", "get --list", nil, "", "--list cannot be used with a verb or a resource", nil},
		{"no resource", "get", nil, "", "specify a verb and a resource, or use --list", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := objectstest.NewServer(t, map[string]any{
				local: tt.response, everywhere: tt.response,
				"GET /api":  map[string]any{"kind": "APIVersions", "versions": []any{}},
				"GET /apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}},
			})
			out, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				return newCanI(server.Factory(t), streams)
			}, strings.Fields(tt.args)...)
			if out != tt.out || !strings.Contains(failure, tt.failure) || tt.failure == "" && failure != "" {
				t.Errorf("got %q, failure %q, want %q, failure %q", out, failure, tt.out, tt.failure)
			}
			writes := strings.Join(server.Writes(), "\n")
			for _, text := range tt.want {
				if !strings.Contains(writes, text) {
					t.Errorf("the request lacks %q: %q", text, writes)
				}
			}
			if tt.want == nil && writes != "" {
				t.Errorf("got requests %q", writes)
			}
		})
	}
}

func TestCanIListsRules(t *testing.T) {
	server := objectstest.NewServer(t, map[string]any{
		"POST /apis/authorization.openshift.io/v1/namespaces/shop/selfsubjectrulesreviews": map[string]any{
			"apiVersion": "authorization.openshift.io/v1", "kind": "SelfSubjectRulesReview", "status": map[string]any{
				"rules": []any{
					map[string]any{"verbs": []any{"create", "get"}, "apiGroups": []any{""}, "resources": []any{"pods"}},
					map[string]any{"verbs": []any{"create"}, "apiGroups": []any{"apps"}, "resources": []any{"deployments"}},
					map[string]any{"verbs": []any{"get", "create"}, "apiGroups": []any{""}, "resources": []any{"pods"}},
				},
				"evaluationError": "role not found",
			},
		},
	})
	out, errOut, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
		return newCanI(server.Factory(t), streams)
	}, "--list", "-q")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "[create get]") || !strings.HasPrefix(lines[2], "[create]") || failure != "" {
		t.Errorf("got %q, failure %q, want a title and two rules in order", out, failure)
	}
	if want := "Error during evaluation, results may not be complete: role not found\n"; errOut != want {
		t.Errorf("got %q, want %q", errOut, want)
	}
}
