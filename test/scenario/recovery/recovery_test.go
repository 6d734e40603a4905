// Package recovery tests that running pods survive the failure of any process on the host. The host
// must recover automatically or after the next `slipway up`.
package recovery

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// witness is a pod that serves a page. Each start of its container appends a line to the page, so
// that tests can detect restarts.
var witness = fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: witness
  labels: {app: witness}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: page, emptyDir: {medium: Memory}}]
  containers:
  - name: server
    image: %s
    command: [sh, -c, "echo started >>/page/index.html && exec httpd -f -p 8080 -h /page"]
    volumeMounts: [{name: page, mountPath: /page}]
    readinessProbe:
      httpGet: {path: /, port: 8080}
      periodSeconds: 1
---
apiVersion: v1
kind: Service
metadata: {name: front}
spec:
  selector: {app: witness}
  ports: [{port: 80, targetPort: 8080}]
`, kit.ToolsImage)

// podIdentity contains the properties of the witness pod that change if its container restarts.
type podIdentity struct {
	container string
	restarts  int32
	address   string
}

func podIdentityOf(c *kit.Cluster) podIdentity {
	pod := c.WaitPodRunning("witness")
	status := pod.Status.ContainerStatuses[0]
	return podIdentity{status.ContainerID, status.RestartCount, pod.Status.PodIP}
}

// checkWorks checks that the cluster works: it starts a pod, reaches it through a service, and
// deletes it.
func checkWorks(c *kit.Cluster) {
	c.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: probe}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: probe, image: %s, command: [sleep, infinity]}]
`, kit.ToolsImage))
	c.WaitPodRunning("probe")
	c.WaitFetch("probe", "http://front/", "started")
	c.OC("delete", "pod", "probe")
}

func TestProcessesRestartUnderRunningPods(t *testing.T) {
	c := kit.Start(t, kit.Options{})
	c.Apply(witness)
	before := podIdentityOf(c)
	for _, process := range []string{"control-plane", "containerd", "node"} {
		t.Run(process, func(t *testing.T) {
			c := c.For(t)
			c.Kill(process)
			if process == "node" {
				reachesPod(t, c)
			}
			waitRestarted(c, process)
			checkWorks(c)
			if after := podIdentityOf(c); after != before {
				t.Errorf("the pod changed from %+v to %+v", before, after)
			}
		})
	}
}

// reachesPod checks that requests that are sent while the node process restarts wait instead of
// failing. It sends each request only once.
func reachesPod(t *testing.T, c *kit.Cluster) {
	var group sync.WaitGroup
	for _, args := range [][]string{
		{"exec", "witness", "--", "cat", "/page/index.html"},
		{"logs", "witness"},
		{"get", "--raw", "/api/v1/nodes/" + c.Pod("witness").Spec.NodeName + "/proxy/stats/summary"},
	} {
		group.Go(func() {
			if _, err := c.TryOC(args...); err != nil {
				t.Errorf("a request while the node restarts: %v", err)
			}
		})
	}
	group.Wait()
}

// waitRestarted waits until the status shows that the process was killed, with its exit status, and
// that all components are ready again.
func waitRestarted(c *kit.Cluster, name string) {
	c.WaitFor("restart of "+name, func(context.Context) error {
		status := c.Status()
		for _, process := range status.Processes {
			if process.Name != name {
				continue
			}
			if process.Restarts == 0 || process.LastError == "" {
				return fmt.Errorf("%d restarts, last error %q", process.Restarts, process.LastError)
			}
		}
		if !status.Ready {
			return fmt.Errorf("not everything is ready: %+v", status.Processes)
		}
		return nil
	})
}

// TestUpAdoptsPodsOfKilledSupervisor kills the supervisor and starts the host again, first with the
// same version and then with another version.
func TestUpAdoptsPodsOfKilledSupervisor(t *testing.T) {
	program, version := kit.OtherVersion(t)
	c := kit.Start(t, kit.Options{})
	c.Apply(witness)
	before := podIdentityOf(c)
	for _, next := range []string{"", program} {
		c.Kill("slipway")
		waitProcessesEnd(c)
		c.Program = next
		c.Up()
		checkWorks(c)
		if after := podIdentityOf(c); after != before {
			t.Errorf("the pod changed from %+v to %+v", before, after)
		}
	}
	if running := c.Status().Version; running != version {
		t.Errorf("version %q is running, want %q", running, version)
	}
}

// waitProcessesEnd waits until only containers and their shims are running on the host.
func waitProcessesEnd(c *kit.Cluster) {
	c.WaitFor("end of the supervisor's processes", func(context.Context) error {
		processes, err := c.Processes()
		if err != nil {
			return err
		}
		for _, process := range processes {
			if process.Program() == "slipway" || process.Program() == "containerd" {
				return fmt.Errorf("still exists: %s", process)
			}
		}
		return nil
	})
}

func TestUpRestartsEverythingAfterPowerLoss(t *testing.T) {
	c := kit.Start(t, kit.Options{})
	c.Apply(witness)
	before := podIdentityOf(c)
	c.KillEverything()
	c.Up()
	c.WaitFor("new container", func(context.Context) error {
		if after := podIdentityOf(c); after.container == before.container || after.restarts != before.restarts+1 {
			return fmt.Errorf("the pod changed from %+v to %+v", before, after)
		}
		return nil
	})
	checkWorks(c)
}
