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
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/pkg/volume"
	volumetesting "k8s.io/kubernetes/pkg/volume/testing"
	"k8s.io/mount-utils"

	"github.com/slipway-platform/slipway/internal/usermode"
)

// mountingHost is a host for the kubelet's volume plugins that performs real mounts.
type mountingHost struct {
	volume.VolumeHost
	mounter mount.Interface
}

// GetMounter returns the mounter that all plugins use.
func (h mountingHost) GetMounter() mount.Interface { return h.mounter }

// volumes mounts volumes with the kubelet's plugins.
type volumes struct {
	t       *testing.T
	plugins volume.VolumePluginMgr
}

// newVolumes prepares the kubelet's own plugins with the given names for mounting volumes.
func newVolumes(t *testing.T, client kubernetes.Interface, names ...string) *volumes {
	t.Helper()
	root := t.TempDir()
	k := &Kubelet{
		NodeName: "node", NodeIP: net.IPv4(192, 0, 2, 1), BindAddress: net.IPv4zero, Port: 10250, CgroupRoot: "/slipway",
		RootDirectory: root, CertDirectory: t.TempDir(), PodLogsDirectory: t.TempDir(), RuntimeSocket: "/run/containerd.sock",
		ImageSocket: "/run/images.sock", DNSIP: "169.254.20.10", Domain: "cluster.local",
	}
	server, err := k.server()
	if err != nil {
		t.Fatal(err)
	}
	dependencies, err := app.UnsecuredDependencies(t.Context(), server, utilfeature.DefaultFeatureGate)
	if err != nil {
		t.Fatal(err)
	}
	plugins := slices.DeleteFunc(k.volumePlugins(dependencies.VolumePlugins), func(p volume.VolumePlugin) bool { return !slices.Contains(names, p.GetPluginName()) })
	if len(plugins) != len(names) {
		t.Fatalf("the kubelet has %d of the plugins %q", len(plugins), names)
	}
	v := &volumes{t: t}
	host := mountingHost{volumetesting.NewFakeKubeletVolumeHost(t, root, client, nil), mount.New("")}
	if err := v.plugins.InitPlugins(plugins, nil, host); err != nil {
		t.Fatal(err)
	}
	return v
}

// mount mounts a volume for a pod and returns the volume's directory. The volume is unmounted when
// the test ends.
func (v *volumes) mount(pod string, source *corev1.PersistentVolume, readOnly bool) string {
	v.t.Helper()
	spec := volume.NewSpecFromPersistentVolume(source, readOnly)
	plugin, err := v.plugins.FindPluginBySpec(spec)
	if err != nil {
		v.t.Fatal(err)
	}
	v.attach(plugin, spec)
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

// attach attaches a volume's device, if it has one, and mounts the device on the node. The device
// is detached when the test ends.
func (v *volumes) attach(plugin volume.VolumePlugin, spec *volume.Spec) {
	v.t.Helper()
	attachable, ok := plugin.(volume.AttachableVolumePlugin)
	if !ok {
		return
	}
	attacher, err := attachable.NewAttacher()
	if err != nil {
		v.t.Fatal(err)
	}
	device, err := attacher.WaitForAttach(spec, "", nil, time.Minute)
	if err != nil {
		v.t.Fatalf("attach volume %q: %v", spec.Name(), err)
	}
	path, err := attacher.GetDeviceMountPath(spec)
	if err == nil {
		err = attacher.MountDevice(spec, device, path, volume.DeviceMounterArgs{})
	}
	if err != nil {
		v.t.Fatalf("mount device %q of volume %q: %v", device, spec.Name(), err)
	}
	v.t.Cleanup(func() {
		detacher, err := attachable.NewDetacher()
		if err == nil {
			err = detacher.UnmountDevice(path)
		}
		if err != nil {
			v.t.Errorf("detach volume %q: %v", spec.Name(), err)
		}
	})
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

// serveNFS exports a directory over NFS to this host.
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

// TestNFSVolumesAreMounted mounts volumes from a real server for several pods, with the mount
// options from each PersistentVolume's annotation.
func TestNFSVolumesAreMounted(t *testing.T) {
	if !usermode.In(t, "nfsd", "nfs", "nfsv4") {
		return
	}
	exported := t.TempDir()
	serveNFS(t, exported)
	v := newVolumes(t, nil, "kubernetes.io/nfs")
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

// target is the name of an iSCSI target.
const target = "iqn.2026-11.example.test:disk"

// serveISCSI serves a 64 MiB disk as LUN 0 of a target, without authentication.
func serveISCSI(t *testing.T) {
	t.Helper()
	disk := filepath.Join(t.TempDir(), "disk")
	run(t, "truncate", "-s", "64M", disk)
	run(t, "mount", "-t", "configfs", "configfs", "/sys/kernel/config")
	const root = "/sys/kernel/config/target"
	device, group := root+"/core/fileio_0/disk", root+"/iscsi/"+target+"/tpgt_1"
	for _, dir := range []string{device, group + "/np/127.0.0.1:3260", group + "/lun/lun_0"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	set := func(file, value string) {
		if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set(device+"/control", "fd_dev_name="+disk+",fd_dev_size=67108864")
	set(device+"/enable", "1")
	if err := os.Symlink(device, group+"/lun/lun_0/disk"); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"generate_node_acls": "1", "cache_dynamic_acls": "1", "demo_mode_write_protect": "0", "authentication": "0"} {
		set(group+"/attrib/"+name, value)
	}
	set(group+"/enable", "1")
}

// startInitiator starts the iSCSI initiator daemon and the daemon that creates device names.
func startInitiator(t *testing.T) {
	t.Helper()
	settings := t.TempDir()
	run(t, "cp", "-a", "/etc/iscsi/.", settings)
	run(t, "mount", "--bind", settings, "/etc/iscsi")
	run(t, "mkdir", "-p", "/run/lock")
	run(t, "/lib/systemd/systemd-udevd", "--daemon")
	run(t, "iscsid")
}

// TestISCSIVolumesAreMounted attaches a LUN of a real target, formats it, and mounts it for a pod.
// It checks that the next pod finds the first pod's file.
func TestISCSIVolumesAreMounted(t *testing.T) {
	if !usermode.In(t, "iscsi_tcp", "iscsi_target_mod", "target_core_file", "sd_mod") {
		return
	}
	serveISCSI(t)
	startInitiator(t)
	source := &corev1.PersistentVolume{}
	source.Name = "disk"
	source.Annotations = map[string]string{corev1.MountOptionAnnotation: "noexec"}
	source.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
	source.Spec.ISCSI = &corev1.ISCSIPersistentVolumeSource{TargetPortal: "127.0.0.1:3260", IQN: target, ISCSIInterface: "default", FSType: "ext4"}
	content := []byte("of the first pod\n")

	t.Run("first", func(t *testing.T) {
		dir := newVolumes(t, nil, "kubernetes.io/iscsi").mount("first", source, false)
		if line := run(t, "findmnt", "--noheadings", "--output", "FSTYPE,OPTIONS", dir); !strings.HasPrefix(line, "ext4") || !strings.Contains(line, "noexec") {
			t.Errorf("the volume is mounted as %s", line)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), content, 0o600); err != nil {
			t.Error(err)
		}
	})
	if sessions, _ := exec.Command("iscsiadm", "-m", "session").CombinedOutput(); !strings.Contains(string(sessions), "No active sessions") {
		t.Errorf("the node is still connected: %s", sessions)
	}
	t.Run("second", func(t *testing.T) {
		dir := newVolumes(t, nil, "kubernetes.io/iscsi").mount("second", source, true)
		if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || !bytes.Equal(got, content) {
			t.Errorf("the volume has %q, %v", got, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "denied"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
			t.Errorf("write to a volume that is read-only: %v", err)
		}
	})
}
