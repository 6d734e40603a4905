package compat

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// schema1 is an ImageStreamMapping for an image with a Docker schema 1 manifest, the format that
// registries stored before 2017. The image's name is the digest of the text that Docker signed.
const schema1 = `apiVersion: image.openshift.io/v1
kind: ImageStreamMapping
metadata: {name: old}
tag: signed
image:
  metadata: {name: "sha256:7c7eec134b4d3944a163fc9139fc5706f0b42c5ed311e85958b39440284637d2"}
  dockerImageManifest: '{"schemaVersion": 1, "name": "library/a", "signatures": [{"signature": "x"}]}'
  dockerImageMetadata: {kind: DockerImage, apiVersion: "1.0", Id: "", Config: {Entrypoint: [enter]}}
`

// TestCommandsPrintOutputOf311 runs commands in order, in the forms that the OpenShift 3.11 client
// accepts. It replaces NS in a command or text with the test's namespace.
func TestCommandsPrintOutputOf311(t *testing.T) {
	c := kit.Shared(t)
	mapping := filepath.Join(t.TempDir(), "mapping.yaml")
	if err := os.WriteFile(mapping, []byte(schema1), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, c, []step{
		{"types", "Deployment Configurations [dc]", true},
		{"ex", "sync-groups", false},

		{"create is old", "created", false},
		{"create -f " + mapping, "created", false},
		{"get istag old:signed -o jsonpath={.image.dockerImageMetadata.Config.Entrypoint}", `["enter"]`, false},
		{"tag old:signed pointer:latest --reference", "Tag pointer:latest set to old@sha256:", false},
		{"get istag pointer:latest -o jsonpath={.image.dockerImageReference}", "/NS/old@sha256:", false},
		{"tag --source=docker registry.example.com/b far:latest --reference", "Tag far:latest set to", false},
		{"get is far -o jsonpath={.status.tags[0].items[0].dockerImageReference}", "registry.example.com/b", false},
		{"get istag far:latest", "not found", true},
		{"set image-lookup is --list", "old", false},
		{"set image-lookup secrets --list", "false", false},
		{"set image-lookup unknown --list", "the server doesn't have a resource type", true},
		{"tag --source=docker registry.example.com/b old:kept", "Tag old:kept set to", false},
		{"import-image old:kept --from=registry.example.com/a", "use the 'tag' command", true},

		{"adm router --dry-run", `Router "router" service does not exist`, true},
		{"adm router --dry-run -o yaml", `service account "router" is not allowed to access the host network on nodes`, true},
		{"adm router --dry-run -o yaml --host-network=false", `service account "router" is not allowed to access host ports on nodes`, true},
		{"adm router --dry-run -o yaml --host-network=false --host-ports=false", "kind: DeploymentConfig", false},
		{"adm ipfailover --virtual-ips=1.2.3.4 --dry-run", "ipfailover could not be created", true},
		{"adm policy add-scc-to-user privileged -z router", "added to", false},
		{"adm router --dry-run -o yaml", "host: localhost", false},
		{"adm policy remove-scc-from-user privileged -z router", "removed", false},

		{"create secret docker-registry login --docker-server=a --docker-username=b --docker-password=c", "created", false},
		{"secrets new-dockercfg login --docker-server=a --docker-username=b --docker-password=c -o yaml", "kind: Secret", false},
		{"secrets unlink default missing", "No valid secrets found or secrets not linked to service account", true},
		{"create clusterquota NS --project-annotation-selector=a=b,novalue", "Malformed annotation selector", true},

		{"create route edge web --service=web", "created", false},
		{"describe route web", `<error: endpoints "web" not found>`, false},
		{"run pod --image=a --restart=Never --attach --dry-run=client", "dry-run can't be used with attached containers options", true},
		{"run pod --image=a --restart=Never", "created", false},
		{"debug pod/pod --node-name=invalid -- env", `on node "invalid"`, true},
	})
}

func TestOpenShiftEditorVariableIsUsed(t *testing.T) {
	c := kit.Shared(t)
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nexec sed -i s/before/after/ \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.OC("create", "configmap", "edited", "--from-literal=key=before")
	t.Setenv("OC_EDITOR", editor)
	t.Setenv("EDITOR", "false")
	c.OC("edit", "configmap/edited")
	if got := c.OC("get", "configmap", "edited", "-o", "jsonpath={.data.key}"); got != "after" {
		t.Errorf("the edited value is %q", got)
	}
}
