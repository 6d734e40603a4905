package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/netnamespace"
	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/network/throughput"
	"github.com/slipway-platform/slipway/test/kit"
	"github.com/slipway-platform/slipway/test/kit/flannel"
)

const (
	// networkRounds is the number of rounds. Each round measures all networks.
	networkRounds = 5
	// streamTime is how long a round measures the throughput, and then the connection rate.
	streamTime = time.Second
	// connectionPort is the port on which the server counts connections.
	connectionPort = throughput.Port + 1
)

// These are the targets for networks.
const (
	latencyAim      = 0.85 // maximum, as a share of flannel's latency
	routesAim       = 1.15 // maximum, as a share of the latency with plain routes
	throughputAim   = 1.0  // minimum, as a share of flannel's throughput
	connectionsAim  = 1.0  // minimum, as a share of flannel's connection rate
	bigClusterAim   = 1.05 // minimum, as a share of the throughput in a cluster without load
	agentMemoryAim  = 20   // maximum, in MiB
	policyChangeAim = 250 * time.Millisecond
)

// transport determines how packets reach another host.
type transport struct {
	name string
	// own is the value of slipway.podTransport. flannel is the value of flannel's backend setting.
	own, flannel string
}

var (
	vxlan  = transport{"VXLAN", "vxlan", "vxlan"}
	routes = transport{"routes", "host-gw", "host-gw"}
)

// TestNetwork measures connections between pods on two hosts. It alternates between Slipway's
// network modes, flannel, and the kernel alone, which is measured without a cluster.
func TestNetwork(t *testing.T) {
	r := newTable("network")
	for _, transport := range []transport{vxlan, routes} {
		t.Run(transport.name, func(t *testing.T) {
			kernel, plain := newKernelPair(t, transport), newKernelPair(t, routes)
			peer := newFlannelPair(t, transport)
			for _, plugin := range []string{networkplugin.Subnet, networkplugin.Multitenant, networkplugin.NetworkPolicy} {
				t.Run(path.Base(plugin), func(t *testing.T) {
					c, own := newOwnPair(t, plugin, transport)
					all := measurePairs(t, own, peer, kernel, plain)
					addComparison(r, fmt.Sprintf("%s, %s", path.Base(plugin), transport.name), all[0], all[1], all[2], all[3])
					if plugin == networkplugin.NetworkPolicy && transport == vxlan {
						measureBigCluster(t, r, c, own)
					}
				})
			}
		})
	}
	r.write(t)
}

// addComparison adds a network mode's figures. For comparison, it also adds the figures of flannel,
// of the kernel alone with the same transport, and of the kernel alone with routes.
func addComparison(r *table, name string, own, flannel, kernel, plain figures) {
	values := func(format func(figures) string) string {
		return fmt.Sprintf("%s; flannel %s, kernel alone %s", format(own), format(flannel), format(kernel))
	}
	median := values(func(f figures) string { return microseconds(f.median) })
	p99 := values(func(f figures) string { return microseconds(f.p99) })
	r.most(name+": latency p50, compared with flannel ("+median+")", ratio(own.median, flannel.median), latencyAim, "%.2f")
	r.most(name+": latency p50, compared with plain routes ("+microseconds(plain.median)+")", ratio(own.median, plain.median), routesAim, "%.2f")
	r.add(name+": latency p99, compared with flannel ("+p99+")", "%.2f", ratio(own.p99, flannel.p99))
	gigabits := values(func(f figures) string { return fmt.Sprintf("%.1f Gbit/s", f.rate/1e9) })
	r.least(name+": throughput, compared with flannel ("+gigabits+")", own.rate/flannel.rate, throughputAim)
	connections := values(func(f figures) string { return fmt.Sprintf("%.0f/s", f.connections) })
	r.least(name+": connections, compared with flannel ("+connections+")", own.connections/flannel.connections, connectionsAim)
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func microseconds(d time.Duration) string { return fmt.Sprintf("%d µs", d.Microseconds()) }

// pair consists of two network namespaces on two hosts that the measured network connects.
type pair struct {
	client, server *netnamespace.Namespace
	// address is the server's address.
	address netip.Addr
}

// figures contains the medians over the rounds.
type figures struct {
	// median and p99 are the median and the 99th percentile of the round-trip time for one byte.
	median, p99 time.Duration
	// rate is the throughput in bits per second.
	rate float64
	// connections is the number of TCP connections per second, opened one after another.
	connections float64
}

// measurePairs measures the pairs alternately.
func measurePairs(t *testing.T, pairs ...pair) []figures {
	t.Helper()
	rounds := make([][]figures, len(pairs))
	for range networkRounds {
		for i, pair := range pairs {
			result, err := pair.measure(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rounds[i] = append(rounds[i], result)
		}
	}
	var medians []figures
	for _, results := range rounds {
		medians = append(medians, figures{
			median:      middle(results, func(f figures) time.Duration { return f.median }),
			p99:         middle(results, func(f figures) time.Duration { return f.p99 }),
			rate:        middle(results, func(f figures) float64 { return f.rate }),
			connections: middle(results, func(f figures) float64 { return f.connections }),
		})
	}
	return medians
}

// middle returns the median of one figure.
func middle[T float64 | time.Duration](results []figures, figure func(figures) T) T {
	var all []T
	for _, result := range results {
		all = append(all, figure(result))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// measure measures the pair once.
func (p pair) measure(ctx context.Context) (f figures, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	address := func(port uint16) string { return netip.AddrPortFrom(p.address, port).String() }
	listener, err := p.server.Listen("tcp", address(throughput.Port))
	if err != nil {
		return f, err
	}
	served := make(chan error, 1)
	go func() { served <- throughput.Serve(ctx, listener, nil) }()
	dial := func(network string) (net.Conn, error) { return p.client.Dial(ctx, network, address(throughput.Port)) }
	result, err := throughput.Measure(ctx, dial, streamTime)
	stop()
	if err := errors.Join(err, <-served); err != nil {
		return f, err
	}
	f.median, f.p99, f.rate = result.Median, result.P99, result.Rate()
	f.connections, err = p.countConnections(address(connectionPort))
	return f, err
}

// countConnections opens connections one after another and exchanges a byte over each connection.
// It returns the number of connections per second.
func (p pair) countConnections(address string) (perSecond float64, err error) {
	listener, err := p.server.Listen("tcp", address)
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.CopyN(conn, conn, 1) // the client detects a failure
			_ = conn.Close()
		}
	}()
	count, start := 0, time.Now()
	err = p.client.Do(func() error {
		for ; time.Since(start) < streamTime; count++ {
			if err := exchange(address); err != nil {
				return err
			}
		}
		return nil
	})
	return float64(count) / time.Since(start).Seconds(), err
}

// exchange opens a connection and exchanges a byte.
func exchange(address string) error {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{0}); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return err
	}
	// Reset the connection when it is closed. Otherwise, the client would run out of local ports.
	return conn.(*net.TCPConn).SetLinger(0)
}

// newOwnPair starts a cluster with two hosts that use the given plugin and transport, and creates
// one pod on each host.
func newOwnPair(t *testing.T, plugin string, transport transport) (*kit.Cluster, pair) {
	t.Helper()
	node := fmt.Sprintf("slipway: {podTransport: %s}", transport.own)
	c := kit.Start(t, kit.Options{Segment: true, Master: fmt.Sprintf("networkConfig: {networkPluginName: %s}", plugin), Node: node + "\nnodeName: first"})
	second := c.NewHost("second", kit.Options{Node: node})
	second.JoinWith(c.APIURL(), c.Token())
	waitReady(c, "second")
	return c, newPodPair(t, c, second)
}

// newFlannelPair starts a cluster with two hosts that flannel connects, with one pod on each host.
func newFlannelPair(t *testing.T, transport transport) pair {
	t.Helper()
	hosts := flannel.NewHosts(t)
	hosts.StartWithAPI(t, transport.flannel)
	return newPodPair(t, hosts[0].Cluster, hosts[1].Cluster)
}

// newPodPair creates one pod on each of the hosts "first" and "second".
func newPodPair(t *testing.T, first, second *kit.Cluster) pair {
	t.Helper()
	namespace := func(host *kit.Cluster, name string) (*netnamespace.Namespace, netip.Addr) {
		first.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: measured-%[1]s}
spec:
  nodeSelector: {kubernetes.io/hostname: %[1]s}
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: %[2]s
    command: [sh, -c, "while :; do sleep 3600; done", measured-%[1]s]
`, name, kit.ToolsImage))
		pod := first.WaitPodRunning("measured-" + name)
		return openPod(t, host, pod.Name), netip.MustParseAddr(pod.Status.PodIP)
	}
	client, _ := namespace(first, "first")
	server, address := namespace(second, "second")
	return pair{client, server, address}
}

// openPod opens a pod's network namespace. It finds the pod's process by the last argument, which
// is the pod's name.
func openPod(t *testing.T, host *kit.Cluster, name string) *netnamespace.Namespace {
	t.Helper()
	processes, err := host.Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		if process.Args[len(process.Args)-1] != name {
			continue
		}
		namespace, err := netnamespace.Open(fmt.Sprintf("/proc/%d/ns/net", process.PID))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { namespace.Close() })
		return namespace
	}
	t.Fatalf("pod %s has no process", name)
	return nil
}
