// Package down proves that `slipway down` removes everything except the data, and that --purge
// removes the data too. Every other scenario ends with `slipway down --purge` and also fails if
// anything remains.
package down

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

var application = fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: kept}
data: {color: blue}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      volumes: [{name: memory, emptyDir: {medium: Memory}}, {name: settings, configMap: {name: kept}}]
      containers:
      - name: web
        image: %s
        command: [sleep, infinity]
        volumeMounts: [{name: memory, mountPath: /memory}, {name: settings, mountPath: /settings}]
---
apiVersion: v1
kind: Pod
metadata: {name: on-host}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: web, image: %[1]s, command: [httpd, -f, -p, "80"], ports: [{containerPort: 80, hostPort: 18081}]}]
`, kit.ToolsImage)

func TestDownKeepsObjectsForNextUp(t *testing.T) {
	c := kit.Start(t, kit.Options{})
	c.Apply(application)
	c.OC("rollout", "status", "deployment/web", "--timeout", "2m")
	c.WaitPodRunning("on-host")

	c.Down() // and checks what remains
	if status := c.Slipway("status"); status.Code != 1 || !strings.Contains(status.Stderr, "slipway up") {
		t.Errorf("slipway status of a stopped host: exit code %d, %q", status.Code, status.Stderr)
	}
	c.MustSlipway("down") // A second call succeeds.

	c.Up()
	if color := c.OC("get", "configmap", "kept", "-o", "jsonpath={.data.color}"); color != "blue" {
		t.Errorf("the object's value is %q", color)
	}
	c.OC("rollout", "status", "deployment/web", "--timeout", "2m")
	c.WaitPodRunning("on-host")
}

func TestDownCleansUpAfterKilledSupervisor(t *testing.T) {
	c := kit.Start(t, kit.Options{})
	c.Apply(application)
	c.WaitPodRunning("on-host")
	c.Kill("slipway")
	c.Down()
}

func TestPurgeRemovesData(t *testing.T) {
	c := kit.Start(t, kit.Options{})
	c.MustSlipway("down", "--purge")
	if entries, err := os.ReadDir(c.DataDir); !os.IsNotExist(err) && len(entries) > 0 {
		t.Errorf("the data directory has %v", entries)
	}
	c.MustSlipway("down", "--purge") // An absent cluster is not an error.
}
