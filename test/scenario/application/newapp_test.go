package application

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// stream creates an image stream in the project. The stream's image exposes a port.
func stream(c *kit.Cluster, t *testing.T, name, digit string) {
	t.Helper()
	c.Apply("{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: " + name + "}}")
	id := "sha256:" + strings.Repeat(digit, 64)
	body := fmt.Sprintf(`{"apiVersion": "image.openshift.io/v1", "kind": "ImageStreamMapping", "metadata": {"name": %q}, "tag": "latest", "image": {
		"metadata": {"name": %q}, "dockerImageReference": %q, "dockerImageMetadata": {"kind": "DockerImage", "apiVersion": "image.openshift.io/1.0",
		"Config": {"User": "1001", "ExposedPorts": {"8080/tcp": {}}, "Labels": {"io.openshift.s2i.scripts-url": "image:///s2i"}}}}}`, name, id, kit.ToolsImage)
	path := "/apis/image.openshift.io/v1/namespaces/" + c.Namespace + "/imagestreammappings"
	if err := c.Client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.OC("delete", "image", id, "--ignore-not-found") })
}

func TestNewAppCreatesApplications(t *testing.T) {
	c := kit.Shared(t)
	stream(c, t, "web", "c")
	output := c.OC("new-app", "web", "COLOR=red", "--name=front", "-l", "tier=front")
	for _, want := range []string{
		fmt.Sprintf(`in image stream "%s/web" under tag "latest" for "web"`, c.Namespace),
		`* This image will be deployed in deployment config "front"`, `* Port 8080/tcp will be load balanced by service "front"`,
		`imagestream.image.openshift.io "front" created`, `deploymentconfig.apps.openshift.io "front" created`, `service "front" created`, "--> Success", "'oc expose svc/front'",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("new-app did not print %q:\n%s", want, output)
		}
	}
	waitOutput(c, "dc/front", "{.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].env[0].value} {.metadata.labels.tier}", kit.ToolsImage+" red front")
	waitOutput(c, "dc/front", `{.metadata.annotations.openshift\.io/generated-by} {.spec.template.metadata.annotations.openshift\.io/generated-by}`, "OpenShiftNewApp OpenShiftNewApp")
	waitOutput(c, "svc/front", "{.spec.ports[0].name} {.spec.selector.deploymentconfig}", "8080-tcp front")

	// The source is in a subdirectory of a Git repository, and the command line specifies the
	// builder image. The command only prints the objects.
	dir := t.TempDir()
	for _, args := range []string{"init --quiet --initial-branch=main", "remote add origin https://example.com/app.git"} {
		if output, err := exec.Command("git", append([]string{"-C", dir}, strings.Fields(args)...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	list := c.OC("new-app", "web~"+dir, "--strategy=source", "--dry-run", "-o", "yaml")
	if _, err := c.TryOCWithInput(list, "create", "-f", "-", "--dry-run=server"); err != nil || !strings.Contains(list, "uri: https://example.com/app.git") {
		t.Errorf("%v: the objects of the dry run are\n%s", err, list)
	}
	if result := c.OC("get", "bc", "-o", "name"); result != "" {
		t.Errorf("a dry run created %s", result)
	}

	// Use a template with parameters.
	c.Apply(shop)
	if output := c.OC("new-app", "shop", "-p", "NAME=third"); !strings.Contains(output, "* KEY=") || !strings.Contains(output, "# generated") || !strings.Contains(output, "made third") {
		t.Errorf("new-app prints for the template:\n%s", output)
	}
	waitOutput(c, "route/third", "{.metadata.labels.shop}", "third")
	if match := c.OC("new-app", "-S", "we"); !strings.Contains(match, "web\n  Project: "+c.Namespace+"\n  Tags:    latest") {
		t.Errorf("the search prints\n%s", match)
	}
	if _, err := c.TryOC("new-app", "nothing-like-it"); err == nil || !strings.Contains(err.Error(), "with name \"nothing-like-it\"") {
		t.Errorf("an unknown name: %v", err)
	}
}
