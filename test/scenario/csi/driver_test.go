// Package csi tests that a third-party CSI driver works in a cluster if it provides only its
// socket. The driver has no access to Kubernetes. Slipway performs all actions in the cluster on
// its behalf.
package csi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/storage/csi/fake"
	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// installation is a CSI driver with the processes that serve it in the cluster.
type installation struct {
	*kit.Cluster
	t          *testing.T
	name       string
	storage    *fake.Driver
	server     *fake.Server
	controller *exec.Cmd // runs `slipway csi controller`
	node       *exec.Cmd // runs `slipway csi node`
}

// install serves a new driver, and starts the programs that register and use it. flags are
// additional flags for the controller. install also creates a StorageClass and a
// VolumeSnapshotClass with the driver's name.
func install(t *testing.T, options fake.Options, flags ...string) *installation {
	t.Helper()
	c := kit.Shared(t)
	// Shorten the name, because a socket path with the driver's name must fit into a Unix socket
	// address.
	i := &installation{Cluster: c, t: t, name: c.Namespace[:min(len(c.Namespace), 20)] + ".example.com"}
	options.Name, options.NodeID, options.Dir = i.name, "machine-7", t.TempDir()
	if err := os.Chmod(options.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	i.storage = fake.New(options)
	if err := os.MkdirAll(filepath.Dir(i.socket()), 0o750); err != nil {
		t.Fatal(err)
	}
	server, err := i.storage.Listen(i.socket())
	if err != nil {
		t.Fatal(err)
	}
	i.server = server
	t.Cleanup(server.Stop)
	i.startNode()
	t.Cleanup(func() {
		if i.node.ProcessState == nil {
			stop(t, i.node) // makes the kubelet unregister the driver
		}
	})
	i.startController(flags...)
	c.Apply(fmt.Sprintf(`
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %[1]s}, provisioner: %[1]s, allowVolumeExpansion: true}
---
{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotClass, metadata: {name: %[1]s}, driver: %[1]s, deletionPolicy: Delete}
`, i.name))
	i.waitText(i.name, "csinode", "-o", "jsonpath={.items[*].spec.drivers[*].name}")
	return i
}

func (i *installation) socket() string {
	return i.Path("kubelet", "plugins", i.name, "csi.sock")
}

// startNode starts the program that registers the driver with the kubelet.
func (i *installation) startNode() {
	i.node = i.StartSlipway(nil, "csi", "node", "--csi-address", "unix://"+i.socket())
}

// startController starts the controller. Any previous controller process must have exited.
func (i *installation) startController(flags ...string) {
	common := []string{"csi", "controller", "--kubeconfig", i.Path("admin.kubeconfig"), "--csi-address", "unix://" + i.socket(), "--retry-interval-max", "5s"}
	i.controller = i.StartSlipway(nil, append(common, flags...)...)
}

// stop stops a process as an administrator does, and waits until it exits.
func stop(t *testing.T, command *exec.Cmd) {
	t.Helper()
	if err := command.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("%s: %v", strings.Join(command.Args[1:3], " "), err)
	}
}

// claim returns a manifest for a claim that uses the driver's class. fields contains additional
// fields for the claim's spec.
func (i *installation) claim(name, size string, fields ...string) string {
	all := append([]string{"accessModes: [ReadWriteOnce]", "storageClassName: " + i.name, "resources: {requests: {storage: " + size + "}}"}, fields...)
	return fmt.Sprintf("---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {%s}}\n", name, strings.Join(all, ", "))
}

// pod returns a manifest for a pod that mounts the claim of the same name at /data.
func pod(name string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: %[2]s, command: [sleep, infinity], volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: %[1]s}}]
`, name, kit.ToolsImage)
}

// sh runs a shell command in a pod and returns its output without leading and trailing whitespace.
func (i *installation) sh(pod, command string) string {
	return strings.TrimSpace(i.Exec(pod, "sh", "-c", command))
}
