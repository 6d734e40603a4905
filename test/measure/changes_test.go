package measure

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/test/kit"
)

// podsPerHost is the number of running pods, on each host, to which a changed policy applies.
var podsPerHost = flag.Int("hostpods", 200, "running pods of each host while policies change")

const (
	// networkChangeAim is the maximum time until a joined or isolated project's network is in
	// effect.
	networkChangeAim = time.Second
	// networkChanges is the number of times that projects are joined, and also the number of times
	// that they are isolated. hostPolicyChanges is the number of policy changes on all hosts.
	networkChanges, hostPolicyChanges = 10, 100
	// leakDatagrams is the number of datagrams that are sent to each host after a change to detect
	// leaks.
	leakDatagrams = 300
)

// lane consists of a sender in a pod on the first host, and a receiver in a pod on one of the
// hosts.
type lane struct {
	sender   net.Conn
	listener net.PacketConn
}

// TestChangesInForce measures how long changes to networks and policies take until all three hosts
// enforce them. Two hosts are on one network segment, and the third host is behind a router. The
// test also measures how long a project has no egress address when a host is lost.
func TestChangesInForce(t *testing.T) {
	r := newTable("network-changes")
	c := kit.Start(t, kit.Options{Segment: true, Node: "nodeName: first", Master: "networkConfig: {networkPluginName: " + networkplugin.Multitenant + "}"})
	hosts := map[string]*kit.Host{"first": c, "second": c.Join("second", kit.Options{}), "distant": c.Join("distant", kit.Options{Segment: true})}
	for name := range hosts {
		waitReady(c, name)
	}
	for _, project := range []string{"clients", "servers"} {
		c.OC("create", "namespace", project)
	}
	lanes := newLanes(t, c, hosts)

	var joins, isolations []time.Duration
	leaked := 0
	for range networkChanges {
		joins = append(joins, changeLanes(t, lanes, true, func() { c.OC("adm", "pod-network", "join-projects", "--to=servers", "clients") }))
		isolations = append(isolations, changeLanes(t, lanes, false, func() { c.OC("adm", "pod-network", "isolate-projects", "clients") }))
		leaked += countLeaks(t, lanes)
	}
	r.aim(fmt.Sprintf("project joined on three hosts, with the command, longest of %d", len(joins)), percentile(joins, 100), networkChangeAim)
	r.aim(fmt.Sprintf("project isolated on three hosts, with the command, longest of %d", len(isolations)), percentile(isolations, 100), networkChangeAim)
	r.most(fmt.Sprintf("datagrams that arrived after the isolation, of %d", networkChanges*leakDatagrams*len(lanes)), float64(leaked), 0, "%.0f")

	moveEgressAddress(t, r, c, hosts["second"])

	c.OC("adm", "pod-network", "join-projects", "--to=servers", "clients")
	for _, lane := range lanes {
		if _, err := untilDatagrams(t.Context(), lane.sender, lane.listener, true); err != nil {
			t.Fatal(err)
		}
	}
	for _, count := range []int{1, *podsPerHost} {
		fillHosts(t, c, hosts, count-1) // newLanes has already created a server on each host
		changes, starts := changePolicies(t, c, lanes)
		r.add(fmt.Sprintf("policy of %d pods on each of three hosts in force on all, median of %d", count, len(changes)), "%s", seconds(median(changes)))
		r.aim(fmt.Sprintf("policy of %d pods on each of three hosts in force on all, p99", count), percentile(changes, 99), policyChangeAim)
		r.add("for comparison, after each of these changes: the program nft without any change, p99", "%s", seconds(percentile(starts, 99)))
	}
	r.write(t)
}

// newLanes creates a pod in the clients project on the first host, and a pod in the servers project
// on each host.
func newLanes(t *testing.T, c *kit.Cluster, hosts map[string]*kit.Host) (lanes []lane) {
	t.Helper()
	createSleeper(t, c.In("clients"), "client", "first")
	c.In("clients").WaitPodRunning("client")
	client := openPod(t, hosts["first"], "client")
	for name, host := range hosts {
		createSleeper(t, c.In("servers"), "server-"+name, name)
		pod := c.In("servers").WaitPodRunning("server-" + name)
		address := netip.AddrPortFrom(netip.MustParseAddr(pod.Status.PodIP), datagramPort).String()
		var l lane
		err := openPod(t, host, pod.Name).Do(func() (err error) {
			l.listener, err = net.ListenPacket("udp4", address)
			return err
		})
		if err == nil {
			l.sender, err = client.Dial(t.Context(), "udp4", address)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.sender.Close(); l.listener.Close() })
		lanes = append(lanes, l)
	}
	return lanes
}

// createSleeper creates a pod that does nothing. The last argument of its process is the pod's
// name, so that openPod can find the process.
func createSleeper(t *testing.T, c *kit.Cluster, name, node string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		NodeSelector: map[string]string{corev1.LabelHostname: node}, TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []corev1.Container{{Name: "main", Image: kit.ToolsImage, Command: []string{"sh", "-c", "while :; do sleep 3600; done", name}}},
	}}
	// Retry until the project's service account exists.
	c.WaitFor("pod "+name, func(ctx context.Context) error {
		_, err := c.Client.CoreV1().Pods(c.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

// fillHosts creates pods in the servers project on each host, and waits until they run.
func fillHosts(t *testing.T, c *kit.Cluster, hosts map[string]*kit.Host, count int) {
	t.Helper()
	servers := c.In("servers")
	for name := range hosts {
		for i := range count {
			createSleeper(t, servers, fmt.Sprintf("fill-%s-%d", name, i), name)
		}
		for i := range count {
			servers.WaitPodRunning(fmt.Sprintf("fill-%s-%d", name, i))
		}
	}
}

// changeLanes makes a change while it sends datagrams to all hosts. It returns the time from the
// start of the change until all hosts enforce it.
func changeLanes(t *testing.T, lanes []lane, passes bool, change func()) (longest time.Duration) {
	t.Helper()
	durations := make([]time.Duration, len(lanes))
	work, ctx := errgroup.WithContext(t.Context())
	start := time.Now()
	change()
	made := time.Since(start)
	for i, lane := range lanes {
		work.Go(func() (err error) {
			durations[i], err = untilDatagrams(ctx, lane.sender, lane.listener, passes)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
	return made + percentile(durations, 100)
}

// countLeaks sends datagrams to all hosts and returns the number that arrive.
func countLeaks(t *testing.T, lanes []lane) (leaked int) {
	t.Helper()
	buffer := make([]byte, 1)
	for range leakDatagrams {
		for _, lane := range lanes {
			_, _ = lane.sender.Write([]byte{0}) // Write fails while a rule rejects the datagrams
			_ = lane.listener.SetReadDeadline(time.Now().Add(datagramInterval))
			if _, _, err := lane.listener.ReadFrom(buffer); err == nil {
				leaked++
			}
		}
	}
	return leaked
}

// changePolicies isolates the servers project and connects it again. It returns the times from the
// response to each request until all hosts enforce the change. starts contains the duration of an
// nft run after each change. Because each host runs nft once for each change, starts shows the
// effect of other work on a busy machine.
func changePolicies(t *testing.T, c *kit.Cluster, lanes []lane) (durations, starts []time.Duration) {
	t.Helper()
	start := func() {
		begin := time.Now()
		if err := c.Do(func() error { return exec.Command("nft", "-f", "/dev/null").Run() }); err != nil {
			t.Fatal(err)
		}
		starts = append(starts, time.Since(begin))
	}
	policies := c.Client.NetworkingV1().NetworkPolicies("servers")
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny-all"}}
	for range hostPolicyChanges / 2 {
		if _, err := policies.Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		durations = append(durations, changeLanes(t, lanes, false, func() {}))
		start()
		if err := policies.Delete(t.Context(), policy.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		durations = append(durations, changeLanes(t, lanes, true, func() {}))
		start()
	}
	return durations, starts
}
