package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/usermode"
	"github.com/slipway-platform/slipway/node/glusterfs"
)

// serveGlusterFS serves a volume that consists of one directory, and returns the server's address.
// It adds this address to the host, because GlusterFS rejects loopback addresses.
func serveGlusterFS(t *testing.T, name string) (address string) {
	t.Helper()
	address = "192.0.2.1"
	run(t, "ip", "address", "add", address+"/32", "dev", "lo")
	for _, dir := range []string{"/var/lib/glusterd", "/var/log/glusterfs", "/tmp"} {
		run(t, "mount", "-t", "tmpfs", "tmpfs", dir)
	}
	const image, brick = "/run/image", "/mnt/brick" // in use until the test's kernel exits
	run(t, "mkdir", brick)
	run(t, "truncate", "-s", "320M", image)
	run(t, "mkfs.xfs", "-q", image)
	run(t, "mount", "-o", "loop", image, brick)
	run(t, "sh", "-c", "glusterd --log-file=/run/glusterd.log || { tail -n 20 /run/glusterd.log; exit 1; }")
	run(t, "gluster", "--mode=script", "volume", "create", name, address+":"+brick+"/data")
	run(t, "gluster", "--mode=script", "volume", "start", name)
	return address
}

// TestGlusterFSVolumesAreMounted mounts a volume from a real server for several pods.
func TestGlusterFSVolumesAreMounted(t *testing.T) {
	if !usermode.In(t, "loop", "fuse") {
		return
	}
	servers := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "servers"},
		Subsets:    []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: serveGlusterFS(t, "shared")}}}},
	}
	v := newVolumes(t, fake.NewClientset(servers), glusterfs.Name)
	source := &corev1.PersistentVolume{}
	source.Name = "volume"
	source.Annotations = map[string]string{corev1.MountOptionAnnotation: "noexec"}
	source.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop"}
	source.Spec.Glusterfs = &corev1.GlusterfsPersistentVolumeSource{EndpointsName: "servers", Path: "shared"}

	first, second, reader := v.mount("first", source, false), v.mount("second", source, false), v.mount("reader", source, true)
	if line := run(t, "findmnt", "--noheadings", "--output", "FSTYPE,OPTIONS", first); !strings.HasPrefix(line, "fuse.glusterfs") || !strings.Contains(line, "noexec") {
		t.Errorf("the volume is mounted as %s", line)
	}
	if err := os.WriteFile(filepath.Join(first, "file"), []byte("of the first pod"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{second, reader} {
		if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(got) != "of the first pod" {
			t.Errorf("%s has %q, %v", dir, got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(reader, "denied"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("write to a volume that is read-only: %v", err)
	}
}
