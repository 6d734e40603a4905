package node

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/pkg/volume"
	volumetest "k8s.io/kubernetes/pkg/volume/testing"
	"k8s.io/mount-utils"

	"github.com/slipway-platform/slipway/internal/usermode"
)

// mountingHost is a host of the kubelet's volume plugins that really mounts.
type mountingHost struct {
	volume.VolumeHost
	mounter mount.Interface
}

// GetMounter returns the mounter of all plugins.
func (h mountingHost) GetMounter() mount.Interface { return h.mounter }

// volumes are volumes that the kubelet's plugins mount.
type volumes struct {
	t       *testing.T
	plugins volume.VolumePluginMgr
}

// newVolumes returns volumes of the kubelet's own plugins of the names.
func newVolumes(t *testing.T, names ...string) *volumes {
	t.Helper()
	root := t.TempDir()
	k := &Kubelet{NodeName: "node1", NodeIP: net.IPv4(192, 0, 2, 1), RootDirectory: root, CertDirectory: t.TempDir(), Kubeconfig: "none"}
	server, err := k.server()
	if err != nil {
		t.Fatal(err)
	}
	dependencies, err := app.UnsecuredDependencies(t.Context(), server, utilfeature.DefaultFeatureGate)
	if err != nil {
		t.Fatal(err)
	}
	plugins := slices.DeleteFunc(dependencies.VolumePlugins, func(p volume.VolumePlugin) bool { return !slices.Contains(names, p.GetPluginName()) })
	if len(plugins) != len(names) {
		t.Fatalf("the kubelet has %d of the plugins %q", len(plugins), names)
	}
	v := &volumes{t: t}
	host := mountingHost{volumetest.NewFakeKubeletVolumeHost(t, root, nil, nil), mount.New("")}
	if err := v.plugins.InitPlugins(plugins, nil, host); err != nil {
		t.Fatal(err)
	}
	return v
}

// mount mounts a volume for a pod and returns its directory. The test unmounts it.
func (v *volumes) mount(pod string, source *corev1.PersistentVolume, readOnly bool) string {
	v.t.Helper()
	spec := volume.NewSpecFromPersistentVolume(source, readOnly)
	plugin, err := v.plugins.FindPluginBySpec(spec)
	if err != nil {
		v.t.Fatal(err)
	}
	object := &corev1.Pod{}
	object.UID = types.UID(pod)
	mounter, err := plugin.NewMounter(spec, object)
	if err == nil {
		err = mounter.SetUp(volume.MounterArgs{})
	}
	if err != nil {
		v.t.Fatalf("mount volume %q for pod %q: %v", source.Name, pod, err)
	}
	v.t.Cleanup(func() {
		unmounter, err := plugin.NewUnmounter(source.Name, object.UID)
		if err == nil {
			err = unmounter.TearDown()
		}
		if _, stat := os.Stat(mounter.GetPath()); err != nil || !errors.Is(stat, os.ErrNotExist) {
			v.t.Errorf("unmount volume %q of pod %q: %v, %v", source.Name, pod, err, stat)
		}
	})
	return mounter.GetPath()
}

// run runs a program and returns its output.
func run(t *testing.T, command ...string) string {
	t.Helper()
	output, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", command, err, output)
	}
	return string(output)
}

// serveNFS exports a directory to the same host.
func serveNFS(t *testing.T, dir string) {
	t.Helper()
	run(t, "mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd")
	for _, name := range []string{"etab", "rmtab"} {
		if err := os.WriteFile(filepath.Join("/var/lib/nfs", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "rpc.mountd", "--no-nfs-version", "3")
	run(t, "rpc.nfsd", "--no-nfs-version", "3", "--no-udp", "1")
	run(t, "exportfs", "-i", "-o", "rw,no_root_squash,fsid=0,insecure", "127.0.0.1:"+dir)
}

// TestNFSVolumesAreMounted mounts volumes of a real server for several pods, with the options of
// the annotation.
func TestNFSVolumesAreMounted(t *testing.T) {
	if !usermode.In(t, "nfsd", "nfs", "nfsv4") {
		return
	}
	exported := t.TempDir()
	serveNFS(t, exported)
	v := newVolumes(t, "kubernetes.io/nfs")
	source := &corev1.PersistentVolume{}
	source.Name = "shared"
	source.Annotations = map[string]string{corev1.MountOptionAnnotation: "nfsvers=4.2,noexec"}
	source.Spec.NFS = &corev1.NFSVolumeSource{Server: "127.0.0.1", Path: "/"}

	first, second, reader := v.mount("first", source, false), v.mount("second", source, false), v.mount("reader", source, true)
	for _, dir := range []string{first, second, reader} {
		line := run(t, "findmnt", "--noheadings", "--output", "FSTYPE,OPTIONS", dir)
		if !strings.HasPrefix(line, "nfs4") || !strings.Contains(line, "noexec") || !strings.Contains(line, "vers=4.2") {
			t.Errorf("%s is mounted as %s", dir, line)
		}
	}
	content := []byte("of the first pod\n")
	if err := os.WriteFile(filepath.Join(first, "file"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{exported, second, reader} {
		if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s has %q, %v", dir, got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(second, "other"), nil, 0o600); err != nil {
		t.Errorf("write of a second pod: %v", err)
	}
	if err := os.WriteFile(filepath.Join(reader, "denied"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("write to a volume that is read-only: %v", err)
	}
}
