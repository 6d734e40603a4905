package measure

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// These are the 99th-percentile limits in Kubernetes' service level objectives: for requests for a
// single object, for lists, and for pod starts.
const callLimit, listLimit, podLimit = time.Second, 5 * time.Second, 5 * time.Second

const (
	// podRate is the number of pods that are created each second.
	podRate = 20
	// creators is the number of concurrent requests that create pods.
	creators = 4
	// sampleInterval is the interval between measured requests.
	sampleInterval = 200 * time.Millisecond
)

// network has a subnet for each of 2,048 nodes, because the default network has only 512 subnets.
const network = "networkConfig: {clusterNetworks: [{cidr: 10.128.0.0/14, hostSubnetLength: 7}]}"

func TestHollowNodes(t *testing.T) {
	r := newTable("scale")
	c := kit.Start(t, kit.Options{Segment: true, Master: network})
	client := unlimited(t, c)
	leaveAlone(*idle)
	empty := controlPlane(t, c)
	registered := startHollow(t, client, *hollowNodes, hollow.run)
	r.add(fmt.Sprintf("registration of %d nodes", *hollowNodes), "%s", seconds(registered))
	leaveAlone(*idle)
	withNodes := controlPlane(t, c)

	s := startSampler(client)
	starts := startPods(t, client, *hollowNodes**podsPerNode)
	calls, lists := s.stop()
	r.aim(fmt.Sprintf("start of a pod, p99 of %d, %d a second", len(starts), podRate), percentile(starts, 99), podLimit)
	r.aim("request for one object during the start, p99", percentile(calls, 99), callLimit)
	r.aim("list of all pods of a project during the start, p99", percentile(lists, 99), listLimit)
	leaveAlone(*idle)
	withPods := controlPlane(t, c)
	r.add("control plane without further nodes", "%s", empty)
	r.add(fmt.Sprintf("control plane with %d nodes", *hollowNodes), "%s", withNodes)
	r.add(fmt.Sprintf("control plane with %d nodes and %d pods", *hollowNodes, len(starts)), "%s", withPods)
	r.add("for each node with its pods", "%d KiB, %.2f ms of CPU time a second", (withPods.bytes-empty.bytes)/int64(*hollowNodes)>>10,
		1000*(withPods.share-empty.share)/float64(*hollowNodes))
	r.write(t)
}

// unlimited returns an API client without a rate limit.
func unlimited(t *testing.T, c *kit.Cluster) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// usage is the control plane's resource usage.
type usage struct {
	bytes int64
	// share is the CPU time per second.
	share float64
}

func (u usage) String() string {
	return fmt.Sprintf("%s, %.0f ms of CPU time a second", mebibytes(u.bytes), 1000*u.share)
}

// controlPlane measures the control plane process for the duration given by -idle.
func controlPlane(t *testing.T, c *kit.Cluster) (u usage) {
	t.Helper()
	pid := processID(t, c, "control-plane")
	before, start := processorTime(t, pid), time.Now()
	leaveAlone(*idle)
	u.share = (processorTime(t, pid) - before) / time.Since(start).Seconds()
	u.bytes = memoryOf(pid).proportional
	return u
}

// processID returns the process ID of a process that `slipway status` lists.
func processID(t *testing.T, c *kit.Cluster, name string) int {
	t.Helper()
	for _, process := range c.Status().Processes {
		if process.Name == name {
			return process.PID
		}
	}
	t.Fatalf("process %s is missing on the host", name)
	return 0
}

// processorTime returns the CPU time that a process has used in user and kernel mode, in seconds.
func processorTime(t *testing.T, pid int) float64 {
	t.Helper()
	proc, err := procfs.NewProc(pid)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := proc.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return stat.CPUTime()
}

// loadNamespace is the namespace for simulated pods.
const loadNamespace = "load"

// startPods creates pods at podRate and returns the time until the API reports each pod as running.
func startPods(t *testing.T, client kubernetes.Interface, count int) (durations []time.Duration) {
	t.Helper()
	const namespace = loadNamespace
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := client.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{}); err == nil {
			break
		}
		leaveAlone(sampleInterval)
	}
	pods, err := client.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	var mu sync.Mutex
	created, numbers := map[string]time.Time{}, make(chan int)
	var creating sync.WaitGroup
	for range creators {
		creating.Go(func() {
			for number := range numbers {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", number)}, Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"hollow": "true"}, Containers: []corev1.Container{{Name: "app", Image: kit.ToolsImage}},
				}}
				mu.Lock()
				created[pod.Name] = time.Now()
				mu.Unlock()
				if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		pace := time.NewTicker(time.Second / podRate)
		defer pace.Stop()
		for number := range count {
			<-pace.C
			numbers <- number
		}
		close(numbers)
		creating.Wait()
	}()
	for event := range pods.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		mu.Lock()
		if start, waits := created[pod.Name]; waits {
			delete(created, pod.Name)
			durations = append(durations, time.Since(start))
		}
		mu.Unlock()
		if len(durations) == count || t.Failed() {
			break
		}
	}
	if len(durations) != count {
		t.Errorf("%d of %d pods run", len(durations), count)
	}
	return durations
}

// sampler measures requests while the cluster is under load.
type sampler struct {
	cancel       context.CancelFunc
	running      sync.WaitGroup
	calls, lists []time.Duration
}

func startSampler(client kubernetes.Interface) *sampler {
	ctx, cancel := context.WithCancel(context.Background())
	s := &sampler{cancel: cancel}
	sample := func(durations *[]time.Duration, call func() error) {
		for ctx.Err() == nil {
			start := time.Now()
			if call() == nil {
				*durations = append(*durations, time.Since(start))
			}
			select {
			case <-ctx.Done():
			case <-time.After(sampleInterval):
			}
		}
	}
	s.running.Go(func() {
		sample(&s.calls, func() error {
			_, err := client.CoreV1().Nodes().Get(ctx, "hollow-0", metav1.GetOptions{})
			return err
		})
	})
	s.running.Go(func() {
		sample(&s.lists, func() error {
			_, err := client.CoreV1().Pods(loadNamespace).List(ctx, metav1.ListOptions{})
			return err
		})
	})
	return s
}

func (s *sampler) stop() (calls, lists []time.Duration) {
	s.cancel()
	s.running.Wait()
	return s.calls, s.lists
}
