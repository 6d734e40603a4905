package csi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// buildDriver builds the image for a driver that runs in pods. docs/admin/csi.md calls this image
// example.org/disk:1.
func buildDriver(t *testing.T, c *kit.Cluster) {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "disk"), "./testdata/driver")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build driver: %v\n%s", err, output)
	}
	const dockerfile = "FROM scratch\nCOPY disk /disk\nENTRYPOINT [\"/disk\"]\n"
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o600); err != nil {
		t.Fatal(err)
	}
	c.MustSlipway("images", "build", "--tag=example.org/disk:1", dir)
}

// TestGuideDeploysDriverInPods runs the commands in docs/admin/csi.md verbatim.
func TestGuideDeploysDriverInPods(t *testing.T) {
	c := kit.Shared(t)
	buildDriver(t, c)
	guide, err := os.ReadFile(c.RepositoryFile("docs", "admin", "csi.md"))
	if err != nil {
		t.Fatal(err)
	}
	shell := c.Shell(t, t.TempDir())
	run := func(command string) {
		t.Helper()
		if output, code, err := shell.Run(command); err != nil || code != 0 {
			t.Fatalf("$ %s\nexit code %d, %v\n%s", command, code, err, output)
		}
	}
	run("export KUBECONFIG=" + c.Path("admin.kubeconfig"))
	commands := regexp.MustCompile(`(?m)^ +(slipway csi manifest .*\| oc apply -f -)$`).FindAllStringSubmatch(string(guide), -1)
	if len(commands) != 2 {
		t.Fatalf("the guide has the commands %q, want the example with and without inline volumes", commands)
	}
	t.Cleanup(func() { run(strings.Replace(commands[1][1], "oc apply", "oc delete --ignore-not-found", 1)) })

	i := &installation{Cluster: c, t: t, name: "disk.csi.example.org"}
	run(commands[0][1])
	i.waitText(i.name, "csinode", "-o", driverNames)
	c.Apply(fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %[1]s}, provisioner: %[1]s}", i.name))
	t.Cleanup(func() { c.OC("delete", "storageclass", i.name) })
	c.Apply(i.claim("data", "1Gi") + pod("data"))
	c.WaitPodRunning("data")
	if got := i.sh("data", "grep -c tmpfs /proc/mounts; cat /data/context"); strings.Contains(got, "csi.storage.k8s.io/pod.name") {
		t.Errorf("the driver got the pod without --driver-pod-info: %s", got)
	}
	volume := c.OC("get", "pvc", "data", "-o", "jsonpath={.spec.volumeName}")
	c.OC("delete", "pod/data", "pvc/data")

	// Delete the CSIDriver, because its lifecycle modes are immutable.
	c.OC("delete", "csidriver", i.name)
	run(commands[1][1])
	c.Apply(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: inline}, spec: {terminationGracePeriodSeconds: 1,
		containers: [{name: main, image: %s, command: [sleep, infinity], volumeMounts: [{name: data, mountPath: /data}]}],
		volumes: [{name: data, csi: {driver: %s}}]}}`, kit.ToolsImage, i.name))
	c.WaitPodRunning("inline")
	if got := i.sh("inline", "cat /data/context"); !strings.Contains(got, `"csi.storage.k8s.io/pod.name":"inline"`) {
		t.Errorf("the driver got %s", got)
	}
	c.OC("delete", "pod", "inline")
	c.OC("wait", "pv/"+volume, "--for=delete", "--timeout=2m")
}
