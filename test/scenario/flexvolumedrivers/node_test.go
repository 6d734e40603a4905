package flexvolumedrivers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// callers is shell code for a driver. It writes the command line of the calling process to
// caller.<operation>.
const callers = "\ntr '\\0' ' ' <\"/proc/$PPID/cmdline\" >\"$dir/caller.$operation\"\n"

// smallNode configures a soft eviction threshold for inodes. Volumes never reach it, but a pod that
// creates many files does.
const smallNode = `
kubeletArguments:
  enable-controller-attach-detach: ['false']
  eviction-hard: ['memory.available<1Mi']
  eviction-soft: ['nodefs.inodesFree<60%%']
  eviction-soft-grace-period: ['nodefs.inodesFree=5s']
  eviction-max-pod-grace-period: ['7']
  eviction-pressure-transition-period: [1s]
volumeDirectory: %s/kubelet
`

// TestNodeAttachesVolumesOnSmallDisk boots a separate cluster with a different node configuration.
// The node attaches volumes instead of the controller, and a driver or pod can fill the disk that
// contains the kubelet's directory.
func TestNodeAttachesVolumesOnSmallDisk(t *testing.T) {
	dir := smallDisk(t)
	c := withClass(kit.Start(t, kit.Options{Node: fmt.Sprintf(smallNode, dir)}))
	t.Run("attaches and detaches", func(t *testing.T) { nodeAttaches(t, c.For(t)) })
	t.Run("detaches volumes that it attached before its restart", func(t *testing.T) { nodeDetachesAfterRestart(t, c.For(t)) })
	t.Run("continues when a driver fills its disk", func(t *testing.T) { driverFillsDisk(t, c.For(t), dir) })
	t.Run("evicts pods after the grace period of a soft threshold", func(t *testing.T) { podIsEvictedSoftly(t, c.For(t)) })
}

// smallDisk creates and mounts a disk that has little more space than a cluster needs to start. It
// returns the disk's path.
func smallDisk(t *testing.T) string {
	t.Helper()
	image, dir := filepath.Join(t.TempDir(), "small"), t.TempDir()
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 2400<<20)); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-m", "0", image}, {"mount", "-o", "loop", image, dir}} {
		if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", command, err, output)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func nodeAttaches(t *testing.T, c *kit.Cluster) {
	d := install(t, c, "node.example.com/disk", "\nvolume=\n", callers+"volume=\n")
	d.run("local")
	d.remove("local")
	for _, op := range []string{"attach", "detach"} {
		d.wasCalled(op, "local", 1)
		by, err := os.ReadFile(filepath.Join(d.dir, "caller."+op))
		if err != nil || !strings.Contains(string(by), "slipway node") {
			t.Errorf("%s was called by %q, error %v", op, by, err)
		}
	}
	attach, detach := d.callsOf("attach", "local"), d.callsOf("detach", "local")
	node := c.Status().Nodes[0].Name
	options := fmt.Sprintf(`{"kubernetes.io/fsType":"ext4","kubernetes.io/pvOrVolumeName":%q,"kubernetes.io/readwrite":"rw"}`, d.volume("local"))
	if want := "attach " + options + " " + node + "\n"; len(attach) != 1 || attach[0] != want {
		t.Errorf("calls %q, want %q", attach, want)
	}
	if want := "detach disk-" + d.volume("local") + " " + node + "\n"; len(detach) != 1 || detach[0] != want {
		t.Errorf("calls %q, want %q", detach, want)
	}
}

// nodeDetachesAfterRestart kills the node process while one volume is in use and another volume is
// being attached. It deletes the other volume's pod before the node process runs again.
func nodeDetachesAfterRestart(t *testing.T, c *kit.Cluster) {
	d := install(t, c, "again.example.com/disk")
	d.run("used")
	d.holdOnce("attach", "end", "forgotten")
	d.use("forgotten")
	d.waitHeld("attach", "end", "forgotten")
	d.deletePods("forgotten")
	d.waitPodsGone("forgotten")
	restart(c, "node")
	c.WaitFor("detachment of the forgotten volume", func(context.Context) error { return d.attached("forgotten") })
	d.waitRunning("used")
	if starts := c.Exec("used", "cat", "/data/starts"); strings.Count(starts, "\n") != 1 {
		t.Errorf("the pod was started again: %q", starts)
	}
	d.remove("used", "forgotten")
	d.wasCalled("detach", "used", 1)
}

// driverFillsDisk makes a driver's mountdevice operation fill the disk that contains the kubelet's
// directory. The pod must wait, with an event that contains the cause. Meanwhile, a volume in use
// can be released. The pod must start when space is available again.
func driverFillsDisk(t *testing.T, c *kit.Cluster, dir string) {
	d := install(t, c, "fills.example.com/disk")
	d.run("before")
	d.fault("mountdevice", "begin", "filling", `
		i=0
		while fallocate --length 64M "`+dir+`/fill.$i" 2>/dev/null; do i=$((i + 1)); done
		cat /dev/zero >"`+dir+`/fill"
		exit 1`)
	d.use("filling")
	waitEvent(c, "FailedMount", "No space left on device")
	d.deletePods("before")
	d.waitPodsGone("before")
	c.WaitFor("release of the volume on the full disk", func(context.Context) error { return d.attached("before") })

	d.release("mountdevice", "begin", "filling")
	files, _ := filepath.Glob(filepath.Join(dir, "fill*")) // the pattern is valid
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	d.waitRunning("filling")
	d.remove("before", "filling")
}

// podIsEvictedSoftly runs a pod that uses most of the inodes on the kubelet's disk. Only the soft
// threshold can evict the pod, because inodes have no hard threshold. The pod ignores signals, so
// the kubelet kills it after the grace period for evicted pods.
func podIsEvictedSoftly(t *testing.T, c *kit.Cluster) {
	c.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: greedy}
spec:
  terminationGracePeriodSeconds: 3600
  containers: [{name: main, image: %s, command: [sh, -c, %q], volumeMounts: [{name: files, mountPath: /files}]}]
  volumes: [{name: files, emptyDir: {}}]
`, kit.ToolsImage, "trap '' TERM; cd /files; seq 110000 | xargs touch; while :; do sleep 1; done"))
	c.WaitFor("eviction of the pod", func(context.Context) error {
		status := c.Pod("greedy").Status
		if status.Phase != corev1.PodFailed {
			return fmt.Errorf("it is %s", status.Phase)
		}
		if status.Reason != "Evicted" || !strings.Contains(status.Message, "The node was low on resource: inodes") {
			t.Errorf("the pod ended with %s: %s", status.Reason, status.Message)
		}
		return nil
	})
	c.OC("delete", "pod", "greedy", "--wait=false")
}

// TestVolumesOfLostNodeAreDetached attaches a volume to a machine that then fails permanently. The
// machine is simulated by a Node object.
func TestVolumesOfLostNodeAreDetached(t *testing.T) {
	t.Parallel()
	c := withClass(kit.Shared(t))
	d := install(t, c, "gone.example.com/disk")
	ctx := context.Background()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "ghost", Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
	}}
	if _, err := c.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.OC("delete", "node", "ghost", "--ignore-not-found") })
	d.claim("moves", nil)
	d.pod("moves", func(pod *corev1.Pod) {
		pod.Spec.NodeName = "ghost"
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	waitHolder(d, "moves", "ghost")

	// The node reports the volume as mounted, fails, and is marked as out of service. Its pod is
	// deleted without a confirmation from the kubelet.
	c.WaitFor("status of the lost node", func(ctx context.Context) error {
		node, err := c.Client.CoreV1().Nodes().Get(ctx, "ghost", metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Status.VolumesInUse = []corev1.UniqueVolumeName{corev1.UniqueVolumeName(d.name + "/disk-" + d.volume("moves"))}
		if node, err = c.Client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			return err
		}
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
			Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute,
		})
		_, err = c.Client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	c.OC("delete", "pod", "moves", "--force", "--grace-period=0")
	waitHolder(d, "moves", "")

	d.pod("moves", nil)
	d.waitRunning("moves")
	waitHolder(d, "moves", c.Pod("moves").Spec.NodeName)
	d.remove("moves")
}

// waitHolder waits until a volume is attached to a node, or to no node if node is empty.
func waitHolder(d *driver, name, node string) {
	d.t.Helper()
	d.c.WaitFor(fmt.Sprintf("attachment of %s to %q", name, node), func(context.Context) error {
		// A missing file results in an empty name, which means that the volume is not attached.
		content, _ := os.ReadFile(filepath.Join(d.dir, "attached."+d.volume(name)))
		if holder := strings.TrimSpace(string(content)); holder != node {
			return fmt.Errorf("the volume is attached to %q", holder)
		}
		return nil
	})
}
