// Package csi proves that a CSI driver of somebody else works in a cluster by its socket alone: the driver knows nothing of
// Kubernetes, and everything that it needs is done for it.
package csi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/parttest"
	"github.com/slipway-platform/slipway/storage/csi"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/fake"
	"github.com/slipway-platform/slipway/storage/csi/register"
	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// installation is a driver that attaches volumes, with what serves it.
type installation struct {
	*kit.Cluster
	name      string
	storage   *fake.Driver
	registrar *parttest.Part
	server    *fake.Server
}

// install serves a driver of the test's own, registers it with kubelet and makes a StorageClass and a VolumeSnapshotClass of its name.
func install(t *testing.T, options fake.Options) *installation {
	t.Helper()
	c := kit.Shared(t)
	i := &installation{Cluster: c, name: c.Namespace + ".example.com"}
	options.Name, options.NodeID, options.Dir = i.name, "machine-7", t.TempDir()
	if err := os.Chmod(options.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	i.storage = fake.New(options)
	dir := c.Path("kubelet", "plugins", i.name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "csi.sock")
	server, err := i.storage.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	i.server = server
	t.Cleanup(server.Stop)
	connection, err := driver.Dial(socket, driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	registrar := &register.Registrar{Driver: connection, Endpoint: socket, Dir: c.Path("kubelet", "plugins_registry")}
	i.registrar = parttest.Run(t, registrar.Run)
	controller := &csi.Controller{Config: c.Config, Drivers: []string{socket}, Features: csi.Features(csi.Options{})}
	parttest.Run(t, controller.Run)
	c.Apply(fmt.Sprintf(`
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %[1]s}, provisioner: %[1]s, allowVolumeExpansion: true}
---
{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotClass, metadata: {name: %[1]s}, driver: %[1]s, deletionPolicy: Delete}
`, i.name))
	i.waitText(i.name, "csinode", "-o", "jsonpath={.items[*].spec.drivers[*].name}")
	return i
}

// claim is the manifest of a claim of the driver; fields are further ones of its spec.
func (i *installation) claim(name, size string, fields ...string) string {
	all := append([]string{"accessModes: [ReadWriteOnce]", "storageClassName: " + i.name, "resources: {requests: {storage: " + size + "}}"}, fields...)
	return fmt.Sprintf("---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {%s}}\n", name, strings.Join(all, ", "))
}

// pod is the manifest of a pod that has the volume of the claim of its own name at /data.
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

// sh runs a shell command in a pod and returns what it prints, without white space around.
func (i *installation) sh(pod, command string) string {
	return strings.TrimSpace(i.Exec(pod, "sh", "-c", command))
}
