package project

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

func TestProjectCommandSelectsProjectOrContext(t *testing.T) {
	project := func(name string) map[string]any {
		return map[string]any{"apiVersion": "project.openshift.io/v1", "kind": "Project", "metadata": map[string]any{"name": name}}
	}
	responses := map[string]any{
		"GET /apis/project.openshift.io/v1/projects/shop": project("shop"), "GET /apis/project.openshift.io/v1/projects/blog": project("blog"),
	}
	for _, tt := range []struct {
		name, args, want, failure, context string
	}{
		{"no argument prints the current project", "", "Using project \"shop\" on server \"URL\".\n", "", "shop"},
		{"no argument with --short prints the name", "--short", "shop\n", "", "shop"},
		{"other project", "blog", "Now using project \"blog\" on server \"URL\".\n", "", "blog/c/alice"},
		{"other project with --short", "blog -q", "blog\n", "", "blog/c/alice"},
		{"context", "staging", "Now using project \"web\" from context named \"staging\" on server \"URL\".\n", "", "staging"},
		{"context with --short prints its project", "staging -q", "web\n", "", "staging"},
		{"hidden or missing project", "secret", "", "you are not a member of project \"secret\"; to list your projects, use oc projects", "shop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := objectstest.NewServer(t, responses)
			out, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				return New(server.Factory(t), streams)
			}, strings.Fields(tt.args)...)
			if want := strings.ReplaceAll(tt.want, "URL", server.URL); out != want || !strings.Contains(failure, tt.failure) || tt.failure == "" && failure != "" {
				t.Errorf("got %q, failure %q, want %q, failure %q", out, failure, want, tt.failure)
			}
			config, err := clientcmd.LoadFromFile(server.Kubeconfig)
			if err != nil || config.CurrentContext != tt.context {
				t.Errorf("got context %q, error %v, want %q", config.CurrentContext, err, tt.context)
			}
		})
	}
}

func TestCurrentProjectIsNotSelectedAgain(t *testing.T) {
	server := objectstest.NewServer(t, map[string]any{
		"GET /apis/project.openshift.io/v1/projects/web": map[string]any{"apiVersion": "project.openshift.io/v1", "kind": "Project"},
	})
	run := func(args ...string) string {
		out, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
			return New(server.Factory(t), streams)
		}, args...)
		return out + failure
	}
	run("staging")
	if got, want := run("web"), "Already on project \"web\" on server \""+server.URL+"\".\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
