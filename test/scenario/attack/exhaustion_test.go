package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// podMemory is the total memory limit, in bytes, for all pods in the small cluster. The cluster
// reserves the rest of the machine's memory, so that a failing test cannot use it up.
const podMemory = 1 << 30

// podPIDs is the maximum number of processes in a pod of the small cluster.
const podPIDs = 256

// smallDisk mounts a new file system that has few inodes, and returns its path.
func smallDisk(t *testing.T) string {
	t.Helper()
	image, dir := filepath.Join(t.TempDir(), "small"), t.TempDir()
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 3600<<20)); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-N", "40000", image}, {"mount", "-o", "loop", image, dir}} {
		if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", command, err, output)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	return data
}

// smallCluster returns a cluster with the default node protection, on a machine whose resources a
// test can exhaust.
func smallCluster(t *testing.T) *kit.Cluster {
	t.Helper()
	var machine unix.Sysinfo_t
	if err := unix.Sysinfo(&machine); err != nil {
		t.Fatal(err)
	}
	reserved := machine.Totalram*uint64(machine.Unit) - podMemory
	return kit.Start(t, kit.Options{DataDir: smallDisk(t), Node: fmt.Sprintf(`
kubeletArguments:
  pod-max-pids: ["%d"]
  system-reserved: ["memory=%d,pid=1000"]
  eviction-hard: ["memory.available<100Mi,nodefs.available<10%%,nodefs.inodesFree<5%%,imagefs.available<15%%,imagefs.inodesFree<5%%,pid.available<10%%"]
  eviction-pressure-transition-period: [1s]
`, podPIDs, reserved)})
}

// attacker returns a pod that runs a script.
func attacker(name, script string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 0
  volumes: [{name: scratch, emptyDir: {}}]
  containers:
  - {name: main, image: %s, command: [sh, -c, %q], volumeMounts: [{name: scratch, mountPath: /scratch}]}
`, name, kit.ToolsImage, script)
}

// TestTenantCannotExhaustNode runs all attacks at the same time, so that each pod is also subject
// to the load that the other pods cause.
func TestTenantCannotExhaustNode(t *testing.T) {
	c := smallCluster(t)
	mallory := c.User("mallory")
	mallory.RequestProject(c, "evil")
	evil := c.In("evil")
	idle := probe(t, c).stop(c, 100)

	probes := probe(t, c)
	attack := func(name, script string) { mallory.May("POST", kit.CorePath("evil", "pods"), attacker(name, script)) }
	// Start the fork bomb, which runs until its pod is deleted.
	attack("fork-bomb", "bomb() { bomb | bomb & }; bomb; exec sleep infinity")
	evil.WaitFor("end of the fork bomb's growth", func(ctx context.Context) error { return limitReached(ctx, evil, "fork-bomb") })
	for name, script := range map[string]string{
		"memory-hog":   "while :; do tail /dev/zero; done",
		"disk-filler":  "while :; do dd if=/dev/zero of=/scratch/$RANDOM bs=1M; dd if=/dev/zero of=/tmp/$RANDOM bs=1M; done",
		"log-filler":   "while :; do yes; done",
		"inode-filler": "n=0; while :; do n=$((n + 1)); : >/tmp/$n; : >/scratch/$n; done 2>/dev/null",
	} {
		attack(name, script)
	}
	evil.WaitFor("end of the memory hog", func(ctx context.Context) error { return killed(ctx, evil, "memory-hog") })
	for _, name := range []string{"disk-filler", "inode-filler"} {
		evil.WaitFor("eviction of the "+name, func(ctx context.Context) error { return evicted(ctx, evil, name) })
	}
	t.Logf("a write and a read of the API take %s idle and %s under attack", idle, probes.stop(c, 100))

	if err := c.Client.CoreV1().Pods("evil").DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	c.WaitFor("node without pressure", func(ctx context.Context) error { return relaxed(ctx, c) })
	c.Apply(sleeper("afterwards", "{}", "{}"))
	c.WaitPodRunning("afterwards")
	evictsLowerPriority(t, c)
	for _, process := range c.Status().Processes {
		if process.Restarts > 0 {
			t.Errorf("%s ended %d times: %s", process.Name, process.Restarts, process.LastError)
		}
	}
}

// limitReached returns nil if the kernel has refused to create a process in a pod.
func limitReached(ctx context.Context, c *kit.Cluster, name string) error {
	group, err := podGroup(ctx, c, name, "pids")
	if err != nil {
		return err
	}
	limit, err := os.ReadFile(filepath.Join(group, "pids.max"))
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(limit)) != strconv.Itoa(podPIDs) {
		return fmt.Errorf("the pod may have %s processes", limit)
	}
	// cgroup v1 counts the event in the container's cgroup. cgroup v2 counts it in the cgroup that
	// has the limit.
	files, err := filepath.Glob(filepath.Join(group, "*", "pids.events"))
	if err != nil {
		return err
	}
	for _, file := range append(files, filepath.Join(group, "pids.events")) {
		if events, err := os.ReadFile(file); err == nil && !strings.HasPrefix(string(events), "max 0") {
			return nil
		}
	}
	return errors.New("no process was refused")
}

// outOfMemory matches a nonzero count of processes that the kernel's OOM killer has killed in a
// cgroup.
var outOfMemory = regexp.MustCompile(`(?m)^oom_kill [1-9]`)

// killed returns nil if the kernel has killed a process in a pod because the pods used up their
// memory. It also returns nil if the kubelet has evicted the pod first.
func killed(ctx context.Context, c *kit.Cluster, name string) error {
	pod, err := c.Client.CoreV1().Pods(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || pod.Status.Reason == "Evicted" {
		return err
	}
	group, err := podGroup(ctx, c, name, "memory")
	if err != nil {
		return err
	}
	// In cgroup v1, memory.oom_control contains the count. In cgroup v2, memory.events contains it.
	files, err := filepath.Glob(filepath.Join(group, "*", "memory.*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		switch filepath.Base(file) {
		case "memory.oom_control", "memory.events":
			if events, err := os.ReadFile(file); err == nil && outOfMemory.Match(events) {
				return nil
			}
		}
	}
	return fmt.Errorf("no process was killed; the pod's containers are %+v", pod.Status.ContainerStatuses)
}

func evicted(ctx context.Context, c *kit.Cluster, name string) error {
	pod, err := c.Client.CoreV1().Pods(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil && pod.Status.Reason != "Evicted" {
		err = fmt.Errorf("the phase of the pod is %s", pod.Status.Phase)
	}
	return err
}

// relaxed returns nil if every node is ready and no node reports pressure.
func relaxed(ctx context.Context, c *kit.Cluster) error {
	nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("the node has taints %v", node.Spec.Taints)
		}
		for _, condition := range node.Status.Conditions {
			if (condition.Type == corev1.NodeReady) != (condition.Status == corev1.ConditionTrue) {
				return fmt.Errorf("%s is %s: %s", condition.Type, condition.Status, condition.Message)
			}
		}
	}
	return nil
}

// prober continuously writes to the API and reads from it. It fails the test on an error.
type prober struct {
	quit, done chan struct{}
	end        func()
	mu         sync.Mutex
	times      []time.Duration
}

func probe(t *testing.T, c *kit.Cluster) *prober {
	t.Helper()
	p := &prober{quit: make(chan struct{}), done: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.quit); <-p.done })
	t.Cleanup(p.end)
	maps := c.Client.CoreV1().ConfigMaps(c.Namespace)
	go func() {
		defer close(p.done)
		for !p.quits() {
			start := time.Now()
			configMap, err := maps.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}, metav1.CreateOptions{})
			if err == nil {
				_, err = maps.Get(context.Background(), configMap.Name, metav1.GetOptions{})
			}
			if err != nil {
				t.Errorf("the API does not respond: %v", err)
				return
			}
			p.mu.Lock()
			p.times = append(p.times, time.Since(start))
			p.mu.Unlock()
		}
	}()
	return p
}

// quits waits for the interval between probes. It reports whether the prober must stop.
func (p *prober) quits() bool {
	select {
	case <-p.quit:
		return true
	case <-time.After(20 * time.Millisecond):
		return false
	}
}

// stop waits until the prober has completed at least minimum probes, and then stops it. It returns
// a summary of the probes' durations.
func (p *prober) stop(c *kit.Cluster, minimum int) string {
	c.WaitFor("responses of the API", func(context.Context) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.times) < minimum {
			return fmt.Errorf("%d of %d", len(p.times), minimum)
		}
		return nil
	})
	p.end()
	slices.Sort(p.times)
	at := func(percent int) time.Duration {
		return p.times[(len(p.times)-1)*percent/100].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("%v (90%%: %v, all %d: %v)", at(50), at(90), len(p.times), at(100))
}

// evictsLowerPriority fills the disk from a high-priority pod, and waits until the kubelet evicts a
// low-priority pod instead.
func evictsLowerPriority(t *testing.T, c *kit.Cluster) {
	t.Helper()
	c.Apply("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: important}, value: 1000}")
	c.Apply(attacker("unimportant", "dd if=/dev/zero of=/scratch/fill bs=1M count=600; exec sleep infinity"))
	// The important pod leaves less free space than the node requires, and less than the
	// unimportant pod uses.
	const fill = "until [ -e /scratch/start ]; do sleep 1; done; n=0; " +
		"while [ $(df -P /scratch | awk 'NR == 2 {print int(100 * $4 / $2)}') -ge 12 ]; do n=$((n + 1)); dd if=/dev/zero of=/scratch/$n bs=1M count=20; done; exec sleep infinity"
	c.Apply(strings.Replace(attacker("important", fill), "spec:", "spec:\n  priorityClassName: important", 1))
	c.WaitPodRunning("important")
	c.WaitFor("statistics of both pods", func(ctx context.Context) error { return measured(ctx, c, "important", "unimportant") })
	c.Exec("important", "touch", "/scratch/start")
	c.WaitFor("eviction of the unimportant pod", func(ctx context.Context) error {
		if evicted(ctx, c, "important") == nil {
			t.Fatal("the important pod is evicted first")
		}
		return evicted(ctx, c, "unimportant")
	})
}

// measured returns nil if the kubelet has measured the disk usage of each pod.
func measured(ctx context.Context, c *kit.Cluster, names ...string) error {
	nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	content, err := c.Client.CoreV1().RESTClient().Get().Resource("nodes").Name(nodes.Items[0].Name).SubResource("proxy").Suffix("stats/summary").DoRaw(ctx)
	if err != nil {
		return err
	}
	var summary struct {
		Pods []struct {
			PodRef  struct{ Name string }
			Storage struct{ UsedBytes uint64 } `json:"ephemeral-storage"`
		}
	}
	if err := json.Unmarshal(content, &summary); err != nil {
		return err
	}
	used := map[string]uint64{}
	for _, pod := range summary.Pods {
		used[pod.PodRef.Name] = pod.Storage.UsedBytes
	}
	for _, name := range names {
		if used[name] == 0 {
			return fmt.Errorf("the pods use %v", used)
		}
	}
	return nil
}
