package volumeplugin

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/volume"
	volumetesting "k8s.io/kubernetes/pkg/volume/testing"
	"k8s.io/kubernetes/pkg/volume/util"
	volumetypes "k8s.io/kubernetes/pkg/volume/util/types"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// driver is a shell driver that logs its calls and mounts a tmpfs as the device. It cannot detach
// while the file <driver>.stuck exists. Tests replace CAPS and MOUNT.
const driver = `#!/bin/sh
printf '%s\n' "$*" >>"$0.log"
case $1 in
init) echo '{"status":"Success","capabilities":{CAPS}}' ;;
getvolumename) echo '{"status":"Success","volumeName":"disk/7"}' ;;
attach|waitforattach) echo '{"status":"Success","device":"/dev/disk7"}' ;;
isattached) echo '{"status":"Success","attached":false}' ;;
detach) [ -e "$0.stuck" ] && echo '{"status":"Failure"}' && exit 1; echo '{"status":"Success"}' ;;
mountdevice) mount -t tmpfs none "$2" && echo '{"status":"Success"}' ;;
unmountdevice) umount "$2" && echo '{"status":"Success"}' ;;
MOUNT
*) echo '{"status":"Not supported"}'; exit 1 ;; esac
`

const name = "example.com/test"

const nodeName = "node"

// cluster is a plugin manager like the kubelet's, with a real mount table and a temporary directory
// as the kubelet's root.
type cluster struct {
	t        *testing.T
	root     string
	path     string // path of the driver
	registry *flexvolume.Registry
	manager  *volume.VolumePluginMgr
	objects  *fake.Clientset
	// attachments is the state of one process. The records on disk outlive the process.
	attachments *Attachments
}

// start installs the driver and starts a manager. A second call simulates a kubelet restart.
func start(t *testing.T, c *cluster, caps, mount string) *cluster {
	t.Helper()
	if c == nil {
		c = &cluster{t: t, root: t.TempDir(), path: filepath.Join(t.TempDir(), "example.com~test", "test")}
		t.Cleanup(c.unmountAll)
		c.install(caps, mount)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns"}, Type: name, Data: map[string][]byte{"key": []byte("pass")}}
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "ns"}, Type: corev1.SecretTypeOpaque}
	next := *c
	next.objects = fake.NewSimpleClientset(secret, other)
	next.registry = &flexvolume.Registry{Dir: filepath.Dir(filepath.Dir(c.path)), KeepDir: filepath.Join(c.root, "keep")}
	componenttest.Run(t, next.registry.Run)
	// The component does not wait for the init of a driver that has a last-good copy, so wait here.
	_, _ = next.registry.Ready(t.Context(), name) // some tests install a driver that fails
	next.attachments = &Attachments{Dir: filepath.Join(c.root, "attached")}
	host := volumetesting.NewFakeVolumeHostWithCSINodeName(t, c.root, next.objects, nil, nodeName, nil, nil)
	next.manager = &volume.VolumePluginMgr{}
	prober := NewProber(next.registry, Options{
		InUse:       func(driver string) bool { return flexvolume.Uses(c.root, driver) },
		Attachments: next.attachments,
	})
	if err := next.manager.InitPlugins(nil, prober, host); err != nil {
		t.Fatal(err)
	}
	return &next
}

func (c *cluster) install(caps, mount string) {
	c.t.Helper()
	script := strings.NewReplacer("CAPS", caps, "MOUNT", mount).Replace(driver)
	if err := os.MkdirAll(filepath.Dir(c.path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(c.path), ".new"), []byte(script), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(filepath.Dir(c.path), ".new"), c.path); err != nil {
		c.t.Fatal(err)
	}
}

// calls returns the driver calls in the driver's log, and removes the log.
func (c *cluster) calls() []string {
	c.t.Helper()
	content, err := os.ReadFile(c.path + ".log")
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	_ = os.Remove(c.path + ".log")
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

func (c *cluster) mounts() []string {
	c.t.Helper()
	table, err := mountinfo.GetMounts(mountinfo.PrefixFilter(c.root))
	if err != nil {
		c.t.Fatal(err)
	}
	var dirs []string
	for _, m := range table {
		dirs = append(dirs, strings.TrimPrefix(m.Mountpoint, c.root))
	}
	return dirs
}

func (c *cluster) unmountAll() {
	for _, dir := range c.mounts() {
		_ = unix.Unmount(c.root+dir, unix.MNT_DETACH)
	}
}

func pv(options map[string]string) *volume.Spec {
	return volume.NewSpecFromPersistentVolume(&corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv1"},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{
			Driver: name, FSType: "ext4", Options: options, SecretRef: &corev1.SecretReference{Name: "s"},
		}}},
	}, false)
}

func inline(volumeName, secret string) *volume.Spec {
	return volume.NewSpecFromVolume(&corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{
		Driver: name, SecretRef: &corev1.LocalObjectReference{Name: secret},
	}}})
}

func pod(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: uid}, Spec: corev1.PodSpec{ServiceAccountName: "sa"}}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestAttachableVolumeLifecycle(t *testing.T) {
	c := start(t, nil, "", "")
	c.calls()
	spec := pv(map[string]string{"size": "1Gi"})
	plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec))
	if plugin == nil || plugin.GetPluginName() != name {
		t.Fatalf("plugin %v", plugin)
	}
	unique := must[corev1.UniqueVolumeName](t)(util.GetUniqueVolumeNameFromSpec(plugin, spec))
	if unique != "example.com/test/disk~7" {
		t.Errorf("unique name %q", unique)
	}
	attacher := must[volume.Attacher](t)(plugin.NewAttacher())
	path := must[string](t)(attacher.Attach(spec, "node"))
	path = must[string](t)(attacher.WaitForAttach(spec, path, nil, time.Minute))
	dir := must[string](t)(attacher.GetDeviceMountPath(spec))
	if err := attacher.MountDevice(spec, path, dir, volume.DeviceMounterArgs{}); err != nil {
		t.Fatal(err)
	}
	group := int64(77)
	mounter := must[volume.Mounter](t)(plugin.NewMounter(spec, pod("uid1")))
	if err := mounter.SetUp(volume.MounterArgs{FsGroup: &group}); err != nil {
		t.Fatal(err)
	}
	var stat unix.Stat_t
	if err := unix.Stat(mounter.GetPath(), &stat); err != nil || stat.Gid != 77 {
		t.Errorf("group %d, %v", stat.Gid, err)
	}
	want := []string{"/plugins/kubernetes.io/flexvolume/example.com/test/mounts/disk~7", "/pods/uid1/volumes/example.com~test/pv1"}
	if diff := cmp.Diff(want, c.mounts()); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}

	// The controller has restarted, so its only information is the node's status.
	pluginName, volumeName, err := util.SplitUniqueName(unique)
	if err != nil {
		t.Fatal(err)
	}
	byName := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginByName(pluginName))
	unmounter := must[volume.Unmounter](t)(byName.NewUnmounter("pv1", "uid1"))
	for range 2 {
		if err := unmounter.TearDown(); err != nil {
			t.Fatal(err)
		}
	}
	detacher := must[volume.Detacher](t)(byName.NewDetacher())
	for range 2 {
		if err := detacher.UnmountDevice(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := detacher.Detach(volumeName, "node"); err != nil {
		t.Fatal(err)
	}
	const input = `{"kubernetes.io/fsType":"ext4","kubernetes.io/pvOrVolumeName":"pv1","kubernetes.io/readwrite":"rw","size":"1Gi"}`
	const mountInput = `{"kubernetes.io/fsGroup":"77","kubernetes.io/fsType":"ext4","kubernetes.io/mounterArgs.FsGroup":"77",` +
		`"kubernetes.io/pod.name":"p","kubernetes.io/pod.namespace":"ns","kubernetes.io/pod.uid":"uid1","kubernetes.io/pvOrVolumeName":"pv1",` +
		`"kubernetes.io/readwrite":"rw","kubernetes.io/secret/key":"cGFzcw==","kubernetes.io/serviceAccount.name":"sa","size":"1Gi"}`
	wantCalls := []string{
		"getvolumename " + input, "attach " + input + " node", "waitforattach /dev/disk7 " + input, "mountdevice " + dir + " /dev/disk7 " + input,
		"mount " + mounter.GetPath() + " " + mountInput, "unmount " + mounter.GetPath(), "unmountdevice " + dir, "detach disk~7 node",
	}
	if diff := cmp.Diff(wantCalls, c.calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if remaining := c.mounts(); len(remaining) > 0 {
		t.Errorf("left mounted: %v", remaining)
	}
	if remaining, _ := filepath.Glob(filepath.Join(c.root, "pods", "uid1", "*", "*", "*")); len(remaining) > 0 {
		t.Errorf("remaining: %v", remaining)
	}
}

const tmpfsMount = `mount) mount -t tmpfs none "$2" && echo '{"status":"Success"}' ;;
unmount) umount "$2" && echo '{"status":"Success"}' ;;`

func TestDriverWithoutAttachIsOnlyMounted(t *testing.T) {
	c := start(t, nil, `"attach":false,"selinuxRelabel":false,"supportsMetrics":true`, tmpfsMount)
	c.calls()
	spec := inline("data", "s")
	if plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec)); plugin != nil {
		t.Error("the volume is attachable")
	}
	if plugin := must[volume.DeviceMountableVolumePlugin](t)(c.manager.FindDeviceMountablePluginBySpec(spec)); plugin != nil {
		t.Error("the volume has a mountable device")
	}
	plugin := must[volume.VolumePlugin](t)(c.manager.FindPluginBySpec(spec))
	mounter := must[volume.Mounter](t)(plugin.NewMounter(spec, pod("uid1")))
	if err := mounter.SetUp(volume.MounterArgs{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(volume.Attributes{Managed: true}, mounter.GetAttributes()); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if metrics, err := mounter.GetMetrics(); err != nil || metrics.Capacity.Value() == 0 {
		t.Errorf("metrics %v, %v", metrics, err)
	}
	unmounter := must[volume.Unmounter](t)(plugin.NewUnmounter("data", "uid1"))
	if err := unmounter.TearDown(); err != nil {
		t.Fatal(err)
	}
	var operations []string
	for _, call := range c.calls() {
		operations = append(operations, strings.Fields(call)[0])
	}
	if diff := cmp.Diff([]string{"mount", "unmount"}, operations); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestSecretOfOtherTypeIsRejected(t *testing.T) {
	c := start(t, nil, `"attach":false`, tmpfsMount)
	spec := inline("data", "other")
	plugin := must[volume.VolumePlugin](t)(c.manager.FindPluginBySpec(spec))
	err := must[volume.Mounter](t)(plugin.NewMounter(spec, pod("uid1"))).SetUp(volume.MounterArgs{})
	if err == nil || !strings.Contains(err.Error(), `read secret ns/other: its type is "Opaque"`) {
		t.Errorf("error %v", err)
	}
	if remaining, _ := filepath.Glob(filepath.Join(c.root, "pods", "*", "*", "*", "*")); len(remaining) > 0 {
		t.Errorf("remaining: %v", remaining)
	}
}

func TestVolumeIsReconstructedWithItsOptions(t *testing.T) {
	c := start(t, nil, "", "")
	spec := pv(map[string]string{"size": "1Gi"})
	plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec))
	attacher := must[volume.Attacher](t)(plugin.NewAttacher())
	dir := must[string](t)(attacher.GetDeviceMountPath(spec))
	if err := attacher.MountDevice(spec, "/dev/x", dir, volume.DeviceMounterArgs{}); err != nil {
		t.Fatal(err)
	}
	mounter := must[volume.Mounter](t)(plugin.NewMounter(spec, pod("uid1")))
	if err := mounter.SetUp(volume.MounterArgs{}); err != nil {
		t.Fatal(err)
	}
	record, err := filepath.Glob(filepath.Join(c.root, "pods", "uid1", "plugins", "example.com~test", "*"))
	if err != nil || len(record) != 1 {
		t.Fatalf("records %v, %v", record, err)
	}
	if content, err := os.ReadFile(record[0]); err != nil || strings.Contains(string(content), "cGFzcw") || strings.Contains(string(content), "pass") {
		t.Errorf("record %s, %v", content, err)
	}

	c = start(t, c, "", "")
	c.calls()
	restarted := must[volume.VolumePlugin](t)(c.manager.FindPluginByName(name))
	rebuilt := must[volume.ReconstructedVolume](t)(restarted.ConstructVolumeSpec("pv1", mounter.GetPath()))
	flex := rebuilt.Spec.PersistentVolume.Spec.FlexVolume
	if flex.Driver != name || flex.FSType != "ext4" || flex.Options["size"] != "1Gi" || rebuilt.Spec.Name() != "pv1" {
		t.Errorf("volume %+v", flex)
	}
	if got := must[string](t)(restarted.GetVolumeName(rebuilt.Spec)); got != "disk~7" {
		t.Errorf("name %q", got)
	}
	if calls := c.calls(); len(calls) > 0 && calls[0] != "" {
		t.Errorf("the driver was called again: %v", calls)
	}
	// A volume mounted by the in-tree plugin has no record.
	rebuilt = must[volume.ReconstructedVolume](t)(restarted.ConstructVolumeSpec("old", filepath.Join(c.root, "pods", "uid2", "volumes", "example.com~test", "old")))
	if rebuilt.Spec.Volume.FlexVolume.Driver != name || rebuilt.Spec.Name() != "old" {
		t.Errorf("volume %+v", rebuilt.Spec.Volume)
	}
}

func TestRemovedDriverServesVolumesInUse(t *testing.T) {
	c := start(t, nil, `"attach":false`, tmpfsMount)
	spec := inline("data", "s")
	plugin := must[volume.VolumePlugin](t)(c.manager.FindPluginBySpec(spec))
	mounter := must[volume.Mounter](t)(plugin.NewMounter(spec, pod("uid1")))
	if err := mounter.SetUp(volume.MounterArgs{}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(c.path)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "removal of the driver", func() bool { e, _ := c.registry.Lookup(name); return e.State == flexvolume.StateRemoved })

	plugin = must[volume.VolumePlugin](t)(c.manager.FindPluginByName(name))
	err := must[volume.Mounter](t)(plugin.NewMounter(spec, pod("uid2"))).SetUp(volume.MounterArgs{})
	if err == nil || !strings.Contains(err.Error(), "has been removed; install it again") {
		t.Errorf("new volume: %v", err)
	}
	if err := must[volume.Unmounter](t)(plugin.NewUnmounter("data", "uid1")).TearDown(); err != nil {
		t.Fatal(err)
	}
	if remaining := c.mounts(); len(remaining) > 0 {
		t.Errorf("left mounted: %v", remaining)
	}
	eventually.True(t, "upstream drops the plugin", func() bool { _, err := c.manager.FindPluginByName(name); return err != nil })
}

func TestUpdateCanChangeAttach(t *testing.T) {
	c := start(t, nil, "", tmpfsMount)
	spec := pv(nil)
	attachable := func() bool {
		return must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec)) != nil
	}
	if !attachable() {
		t.Fatal("the volume is not attachable before the update")
	}
	c.install(`"attach":false`, tmpfsMount)
	eventually.True(t, "volumes are no longer attachable", func() bool { return !attachable() })
	// A volume that was attached before the change is still detached.
	plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginByName(name))
	if err := must[volume.Detacher](t)(plugin.NewDetacher()).Detach("disk~7", "node"); err != nil {
		t.Error(err)
	}
	c.install("", tmpfsMount)
	eventually.True(t, "volumes are attachable again", attachable)
}

func TestHangingGetVolumeNameDoesNotBlockOtherDrivers(t *testing.T) {
	c := start(t, nil, "", "")
	const script = "#!/bin/sh\ncase $1 in getvolumename) echo $$ >\"$0.pid\"; exec sleep 1000;; *) echo '{\"status\":\"Success\"}';; esac\n"
	other := filepath.Join(filepath.Dir(filepath.Dir(c.path)), "example.com~hung", "hung")
	t.Cleanup(func() {
		content, err := os.ReadFile(other + ".pid")
		if err != nil {
			t.Fatal(err)
		}
		pid := must[int](t)(strconv.Atoi(strings.TrimSpace(string(content))))
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
		eventually.True(t, "the failed init is reported", func() bool {
			_, err := flexvolume.LastFailure(filepath.Join(c.root, "keep"), "example.com/hung")
			return err == nil
		})
	})
	if err := os.MkdirAll(filepath.Dir(other), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the hanging driver is ready", func() bool { e, _ := c.registry.Lookup("example.com/hung"); return e.State == flexvolume.StateReady })
	hung := pv(nil)
	hung.PersistentVolume.Spec.FlexVolume.Driver = "example.com/hung"
	plugin := must[volume.VolumePlugin](t)(c.manager.FindPluginBySpec(hung))
	for range 3 {
		if _, err := plugin.GetVolumeName(hung); err == nil || !strings.Contains(err.Error(), "getvolumename has been running") {
			t.Errorf("error %v", err)
		}
	}
	// Later callers do not wait again. Otherwise, these calls would take half an hour.
	for range 1000 {
		if _, err := plugin.GetVolumeName(hung); err == nil {
			t.Fatal("no error")
		}
	}
}

func TestAttachedVolumesAreVerified(t *testing.T) {
	c := start(t, nil, "", "")
	spec := pv(nil)
	plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec))
	attacher := must[volume.Attacher](t)(plugin.NewAttacher())
	attached := must[map[*volume.Spec]bool](t)(attacher.VolumesAreAttached([]*volume.Spec{spec}, "node"))
	if len(attached) != 1 || attached[spec] {
		t.Errorf("attached %v", attached)
	}
}

// The kubelet treats an error that is not transient as the result of a call that might have mounted
// something. It would leave that mount in place forever.
func TestErrorBeforeDriverCallIsTransient(t *testing.T) {
	c := start(t, nil, "", "")
	spec := pv(nil)
	plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec))
	attacher := must[volume.Attacher](t)(plugin.NewAttacher())
	dir := must[string](t)(attacher.GetDeviceMountPath(spec))
	if err := os.WriteFile(c.path, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the driver has failed", func() bool { e, _ := c.registry.Lookup(name); return e.State == flexvolume.StateFailed })
	mounter := must[volume.Mounter](t)(plugin.NewMounter(spec, pod("uid1")))
	for name, err := range map[string]error{
		"device": attacher.MountDevice(spec, "/dev/x", dir, volume.DeviceMounterArgs{}),
		"volume": mounter.SetUp(volume.MounterArgs{}),
	} {
		if err == nil || volumetypes.IsOperationFinishedError(err) || volumetypes.IsUncertainProgressError(err) {
			t.Errorf("%s: %T %v", name, err, err)
		}
	}
}

// Kubernetes shows the error in the pod's event.
func TestErrorOfDriverCallNamesNodeAndRemedy(t *testing.T) {
	c := start(t, nil, `"attach":false`, `mount) echo '{"status":"Failure","message":"no disk"}'; exit 1 ;;`)
	spec := inline("data", "s")
	plugin := must[volume.VolumePlugin](t)(c.manager.FindPluginBySpec(spec))
	err := must[volume.Mounter](t)(plugin.NewMounter(spec, pod("uid1"))).SetUp(volume.MounterArgs{})
	for _, text := range []string{`on node "node"`, name, "no disk", "slipway flexvolume history example.com/test"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want %q", err, text)
		}
	}
}
