package deploymentconfig

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

func TestRollbackChoosesVersionAndReportsTriggers(t *testing.T) {
	const apps = "/apis/apps.openshift.io/v1/namespaces/shop/deploymentconfigs"
	config := map[string]any{"apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{"triggers": []any{
			map[string]any{"type": "ConfigChange"},
			map[string]any{"type": "ImageChange", "imageChangeParams": map[string]any{"from": map[string]any{"kind": "ImageStreamTag", "name": "web:latest"}}},
		}},
		"status": map[string]any{"latestVersion": 4},
	}
	deployment := func(version, phase string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ReplicationController", "metadata": map[string]any{
			"name": "web-" + version, "namespace": "shop", "labels": map[string]any{"openshift.io/deployment-config.name": "web"},
			"annotations": map[string]any{
				"openshift.io/deployment-config.name": "web", "openshift.io/deployment-config.latest-version": version, "openshift.io/deployment.phase": phase,
			},
		}}
	}
	responses := map[string]any{
		"GET " + apps + "/web": config, "POST " + apps + "/web/rollback": config,
		"GET /api/v1/namespaces/shop/replicationcontrollers": map[string]any{"apiVersion": "v1", "kind": "ReplicationControllerList", "items": []any{
			deployment("4", "Complete"), deployment("3", "Failed"), deployment("2", "Complete"), deployment("1", "Complete"),
		}},
		"GET /api/v1/namespaces/shop/replicationcontrollers/web-1": deployment("1", "Complete"),
	}
	const done = "deploymentconfig.apps.openshift.io/web rolled back\n"
	const warning = "Warning: the following images triggers were disabled: web:latest\n  You can re-enable them with: oc set triggers dc/web --auto\n"
	for _, tt := range []struct {
		name, args, out, errOut, revision string
		stores                            bool
	}{
		{"newest complete deployment before the latest", "dc/web", done, warning, `"revision":2`, true},
		{"version of the flag", "dc/web --to-version=3", done, warning, `"revision":3`, true},
		{"name of a deployment", "web-1", done, warning, `"revision":1`, true},
		{"name of a deployment with its kind", "rc/web-1", done, warning, `"revision":1`, true},
		{"triggers and strategy", "dc/web --change-triggers --change-strategy", done, warning, `"includeTriggers":true,"includeTemplate":true,"includeReplicationMeta":false,"includeStrategy":true`, true},
		{"output stores nothing", "dc/web -oname", "deploymentconfig.apps.openshift.io/web\n", "", `"revision":2`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := objectstest.NewServer(t, responses)
			out, errOut, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				return NewRollback(server.Factory(t), streams)
			}, strings.Fields(tt.args)...)
			if failure != "" || out != tt.out || errOut != tt.errOut {
				t.Errorf("got %q, %q, failure %q, want %q, %q", out, errOut, failure, tt.out, tt.errOut)
			}
			writes := server.Writes()
			if len(writes) == 0 || !strings.HasPrefix(writes[0], "POST "+apps+"/web/rollback ") || !strings.Contains(writes[0], tt.revision) {
				t.Errorf("got requests %q, want a rollback with %s first", writes, tt.revision)
			}
			if stores := len(writes) == 2 && strings.HasPrefix(writes[len(writes)-1], "PUT "+apps+"/web "); stores != tt.stores {
				t.Errorf("got requests %q, want storing %v", writes, tt.stores)
			}
		})
	}
}

func TestRollbackNeedsAnEarlierCompleteDeployment(t *testing.T) {
	server := objectstest.NewServer(t, map[string]any{
		"GET /apis/apps.openshift.io/v1/namespaces/shop/deploymentconfigs/web": map[string]any{
			"apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "metadata": map[string]any{"name": "web"}, "status": map[string]any{"latestVersion": 1},
		},
		"GET /api/v1/namespaces/shop/replicationcontrollers": map[string]any{"apiVersion": "v1", "kind": "ReplicationControllerList", "items": []any{}},
	})
	_, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
		return NewRollback(server.Factory(t), streams)
	}, "dc/web")
	if !strings.Contains(failure, `roll back deployment config "web": no deployment before the latest one is complete`) || len(server.Writes()) > 0 {
		t.Errorf("got failure %q, requests %q", failure, server.Writes())
	}
}

func TestOtherResourcesAreNamed(t *testing.T) {
	responses := map[string]any{
		"GET /apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}},
		"GET /api":  map[string]any{"kind": "APIVersions", "versions": []any{"v1"}},
		"GET /api/v1": map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
			map[string]any{"name": "replicationcontrollers", "namespaced": true, "kind": "ReplicationController", "shortNames": []any{"rc"}, "verbs": []any{"get"}},
		}},
	}
	for arg, want := range map[string]string{
		"rc/web-1":     "expected deployment configuration, got replicationcontrollers: name one, as in dc/NAME",
		"unknown/some": "expected deployment configuration, got unknown: name one, as in dc/NAME",
	} {
		server := objectstest.NewServer(t, responses)
		_, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
			parent := &cobra.Command{Use: "rollout"}
			parent.AddCommand(NewRollout(server.Factory(t), streams)...)
			return parent
		}, "cancel", arg)
		if !strings.Contains(failure, want) {
			t.Errorf("%s: got %q, want %q", arg, failure, want)
		}
	}
}
