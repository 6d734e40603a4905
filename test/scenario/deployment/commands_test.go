package deployment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestCommandsReachPodsOfDeployment(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(configuration("web", `replicas: 1, triggers: [{type: ConfigChange}]`, version("one")))
	waitReplicas(c, "web-1", 1)
	pod := c.OnlyPod("app=web").Name
	if got := c.OC("rsh", "dc/web", "sh", "-c", "echo $VERSION"); got != "one\n" {
		t.Errorf("rsh prints %q", got)
	}
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "a"), []byte("there and back"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.OC("rsync", directory+"/", pod+":/tmp/data", "--strategy=tar", "--delete")
	back := t.TempDir()
	c.OC("rsync", pod+":/tmp/data", back, "--strategy=tar", "--delete")
	if content, err := os.ReadFile(filepath.Join(back, "data", "a")); err != nil || string(content) != "there and back" {
		t.Errorf("the copied file contains %q: %v", content, err)
	}
	got, err := c.TryOC("debug", "dc/web", "VERSION=two", "--", "sh", "-c", "echo $VERSION; exit 3")
	if err == nil || !strings.Contains(err.Error(), "exit code 3") || got != "two\n" {
		t.Errorf("debug prints %q, %v", got, err)
	}
	for _, tt := range []struct{ user, want string }{{"--as-root", "0\n"}, {"--as-user=1234", "1234\n"}} {
		if got := c.OC("debug", "dc/web", tt.user, "--", "id", "-u"); got != tt.want {
			t.Errorf("debug with %s runs as %q", tt.user, got)
		}
	}
	node := c.OC("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
	file := filepath.Join(directory, "a")
	if got := c.OC("debug", "node/"+node, "--image="+kit.ToolsImage, "--", "chroot", "/host", "cat", file); got != "there and back" {
		t.Errorf("the file on the node contains %q", got)
	}
	if got := c.OC("observe", "--listen-addr=", "--once", "--no-headers", "pods", "-l", "app=web", "--", "echo"); got != c.Namespace+" "+pod+"\n" {
		t.Errorf("observe prints %q", got)
	}
	c.OC("run", "ran", "--image="+kit.ToolsImage, "--replicas=1", "--port=8080", "--expose", "--", "sleep", "100000")
	waitReplicas(c, "ran-1", 1)
	waitOutput(c, "service/ran", "{.spec.selector} {.spec.ports[0].targetPort}", `{"run":"ran"} 8080`)
	got, err = c.TryOCWithInput("hello\n", "run", "talks", "-i", "--rm", "--quiet", "--generator=deploymentconfig/v1", "--image="+kit.ToolsImage, "--", "sh", "-c", "read line; echo got $line; sleep 1")
	if err != nil || got != "got hello\n" {
		t.Errorf("a pod of a deployment configuration responds with %q, %v", got, err)
	}
	if _, err := c.TryOC("get", "dc/talks"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("after the session: %v", err)
	}
	c.OC("set", "volume", "dc/ran", "--add", "--name=data", "--claim-size=1Mi", "--claim-name=data", "--claim-class=none", "--mount-path=/data")
	waitOutput(c, "pvc/data", "{.spec.resources.requests.storage} {.spec.accessModes[0]} {.spec.storageClassName}", "1Mi ReadWriteOnce none")
	if _, err := c.TryOC("set", "volume", "dc/ran", "--add", "--claim-size=1Mi", "--claim-name=none", "--name=No", "--mount-path=/no"); err == nil || !strings.Contains(err.Error(), "lowercase") {
		t.Errorf("an invalid name: %v", err)
	}
	if claims := c.OC("get", "pvc", "-o", "name"); claims != "persistentvolumeclaim/data\n" {
		t.Errorf("claims: %q", claims)
	}
}
