package measure

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/test/kit"
)

const (
	// bigProjects is the number of projects, each with a network policy and bigPods pods. The pods
	// are on bigNodes simulated nodes.
	bigProjects, bigPods, bigNodes = 1000, 10, 40
	// policyChanges is the number of policy changes that the test measures.
	policyChanges = 20
	// datagramInterval is the interval between the datagrams that detect whether a change has taken
	// effect.
	datagramInterval = time.Millisecond
	// datagramPort is the port to which the datagrams are sent.
	datagramPort = 9000
)

// measureBigCluster adds projects, policies and pods to a cluster. It then measures the pair again,
// the node process's memory, and the time until a changed policy takes effect.
func measureBigCluster(t *testing.T, r *table, c *kit.Cluster, own pair) {
	t.Helper()
	leaveAlone(*idle)
	before := memoryOf(processID(t, c, "node")).proportional
	small := measurePairs(t, own)[0]
	createBigCluster(t, c)
	leaveAlone(*idle)
	after := memoryOf(processID(t, c, "node")).proportional
	big := measurePairs(t, own)[0]
	size := fmt.Sprintf("%d projects, policies, and %d pods", bigProjects, bigProjects*bigPods)
	r.most(fmt.Sprintf("%s: latency p50, compared with none (%s, %s)", size, microseconds(big.median), microseconds(small.median)), ratio(big.median, small.median), bigClusterAim, "%.2f")
	r.most(fmt.Sprintf("%s: throughput of none, compared with it (%.1f, %.1f Gbit/s)", size, small.rate/1e9, big.rate/1e9), small.rate/big.rate, bigClusterAim, "%.2f")
	r.most(fmt.Sprintf("%s: connections of none, compared with it (%.0f/s, %.0f/s)", size, small.connections, big.connections), small.connections/big.connections, bigClusterAim, "%.2f")
	r.most(size+": additional memory of the node process (PSS)", float64(after-before)/(1<<20), agentMemoryAim, "%.0f MiB")
	durations := measurePolicyChanges(t, c, own)
	r.add(size+": change of a policy until effective, median", "%s", seconds(median(durations)))
	r.aim(fmt.Sprintf("%s: change of a policy until effective, longest of %d", size, len(durations)), percentile(durations, 100), policyChangeAim)
}

// createBigCluster creates the projects with their policies and running pods.
func createBigCluster(t *testing.T, c *kit.Cluster) {
	t.Helper()
	client := unlimited(t, c)
	startHollow(t, client, bigNodes, hollow.renew)
	var subnets []netip.Prefix
	for i := range bigNodes {
		name := fmt.Sprintf("hollow-%d", i)
		c.WaitFor("subnet of node "+name, func(context.Context) error {
			text, err := c.TryOC("get", "hostsubnet", name, "-o", "jsonpath={.subnet}")
			if err != nil {
				return err
			}
			subnet, err := netip.ParsePrefix(text)
			if err == nil {
				subnets = append(subnets, subnet)
			}
			return err
		})
	}
	work, ctx := errgroup.WithContext(t.Context())
	work.SetLimit(creators)
	for number := range bigProjects {
		work.Go(func() error {
			if err := createProject(ctx, client, number, subnets); err != nil {
				return fmt.Errorf("create project %d: %w", number, err)
			}
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
}

// createProject creates a project with a policy that allows connections only from the project's own
// pods.
func createProject(ctx context.Context, client kubernetes.Interface, number int, subnets []netip.Prefix) error {
	name := fmt.Sprintf("project-%d", number)
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "own-pods"}, Spec: networkingv1.NetworkPolicySpec{
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}},
	}}
	if _, err := client.NetworkingV1().NetworkPolicies(name).Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if _, err := client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{}); err == nil {
			break
		}
		leaveAlone(sampleInterval)
	}
	node := hollow{client: client, number: number % bigNodes}
	node.name = fmt.Sprintf("hollow-%d", node.number)
	for i := range bigPods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i)}, Spec: corev1.PodSpec{
			NodeName: node.name, Containers: []corev1.Container{{Name: "app", Image: kit.ToolsImage}},
		}}
		created, err := client.CoreV1().Pods(name).Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		octets := subnets[node.number].Addr().As4()
		offset := 2 + number/bigNodes*bigPods + i // the offset fits in the node's /23 subnet
		octets[2] += byte(offset >> 8)
		octets[3] = byte(offset)
		node.start(ctx, created, netip.AddrFrom4(octets).String())
	}
	return ctx.Err()
}

// measurePolicyChanges isolates the pair's pods and connects them again. It returns the times from
// the response to each request until the first datagram that shows the change.
func measurePolicyChanges(t *testing.T, c *kit.Cluster, own pair) (durations []time.Duration) {
	t.Helper()
	address := net.JoinHostPort(own.address.String(), fmt.Sprint(datagramPort))
	var listener net.PacketConn
	err := own.server.Do(func() (err error) {
		listener, err = net.ListenPacket("udp4", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	sender, err := own.client.Dial(t.Context(), "udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	policies := c.Client.NetworkingV1().NetworkPolicies(c.Namespace)
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny-all"}}
	wait := func(passes bool) time.Duration {
		took, err := untilDatagrams(t.Context(), sender, listener, passes)
		if err != nil {
			t.Fatal(err)
		}
		return took
	}
	wait(true)
	for range policyChanges / 2 {
		if _, err := policies.Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		durations = append(durations, wait(false))
		if err := policies.Delete(t.Context(), policy.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		durations = append(durations, wait(true))
	}
	return durations
}

// untilDatagrams sends datagrams until one of them arrives or, if passes is false, until a hundred
// consecutive datagrams are lost. It returns the time until the first of these datagrams.
func untilDatagrams(ctx context.Context, sender net.Conn, listener net.PacketConn, passes bool) (time.Duration, error) {
	start := time.Now()
	change := start
	buffer := make([]byte, 1)
	for lost := 0; ctx.Err() == nil; {
		sent := time.Now()
		_, _ = sender.Write([]byte{0}) // Write fails while a policy rejects the datagrams
		_ = listener.SetReadDeadline(sent.Add(datagramInterval))
		_, _, err := listener.ReadFrom(buffer)
		switch arrived := err == nil; {
		case arrived && passes:
			return time.Since(start), nil
		case arrived:
			lost, change = 0, time.Now()
		case !passes:
			if lost++; lost == 100 {
				return change.Sub(start), nil
			}
		}
	}
	return 0, ctx.Err()
}
