package idle

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/idling"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// stack contains the addresses that a test uses in one IP family.
type stack struct {
	tcp, udp, node, pod, services, service, endpoint, other string
}

// prefix returns the prefix length of the segment.
func (s stack) prefix() string { return map[string]string{"tcp4": "/24", "tcp6": "/64"}[s.tcp] }

// stacks returns the addresses of both families.
func stacks() []stack {
	return []stack{
		{"tcp4", "udp4", "10.128.0.1", "10.128.0.2", "172.30.0.0/16", "172.30.0.1", "127.0.0.2", "127.0.0.3"},
		{"tcp6", "udp6", "fd01::1", "fd01::2", "fd02::/112", "fd02::1", "::1", "fd01::3"},
	}
}

// eachStack runs a test in both families.
func eachStack(t *testing.T, test func(*testing.T, stack)) {
	for _, s := range stacks() {
		t.Run(s.tcp, func(t *testing.T) { test(t, s) })
	}
}

// idleService creates a cluster with one idle service, on TCP port 80 and UDP port 53, and runs the
// proxy.
func (s stack) idleService(t *testing.T, policed func(context.Context, netip.Addr, netip.Addr) (bool, error)) (pod hosttest.Namespace, client *fake.Clientset) {
	pod = hosttest.NewNamespace(t, "pod")
	t.Cleanup(pod.Delete)
	pod.Connect(t, s.node+s.prefix(), s.pod+s.prefix())
	// Real hosts send packets to service addresses over the default route. This route takes its
	// place.
	_, services, _ := net.ParseCIDR(s.services)
	if err := netlink.RouteAdd(&netlink.Route{Dst: services, Gw: net.ParseIP(s.pod)}); err != nil {
		t.Fatal(err)
	}
	var ips []string
	for _, family := range stacks() {
		ips = append(ips, family.service)
	}
	client = fake.NewClientset(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{idling.IdledAt: "2026-01-01T00:00:00Z"}},
		Spec: corev1.ServiceSpec{ClusterIPs: ips, Ports: []corev1.ServicePort{
			{Name: "http", Port: 80, NodePort: 30080}, {Name: "names", Port: 53, NodePort: 30053, Protocol: corev1.ProtocolUDP},
		}},
	})
	p := &Proxy{Client: client, Table: "slipway-idle", IPv6: true, Host: "host", Policed: policed}
	componenttest.Run(t, p.Run)
	return pod, client
}

// waitForEvent waits for the NeedPods event.
func waitForEvent(t *testing.T, client *fake.Clientset) {
	t.Helper()
	eventually.Equal(t, "event NeedPods", func() string {
		events, err := client.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(events.Items) == 0 {
			return fmt.Sprint(err)
		}
		return events.Items[0].Reason + " " + events.Items[0].InvolvedObject.Name
	}, "NeedPods web")
}

// serve adds an endpoint to the service. The endpoint echoes its input.
func (s stack) serve(t *testing.T, client *fake.Clientset) {
	t.Helper()
	server, err := net.Listen(s.tcp, net.JoinHostPort(s.endpoint, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go echo(server)
	datagrams, err := net.ListenPacket(s.udp, net.JoinHostPort(s.endpoint, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { datagrams.Close() })
	go echoDatagrams(datagrams)
	port := func(name string, protocol corev1.Protocol, address net.Addr) discoveryv1.EndpointPort {
		return discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: ptr.To(int32(netip.MustParseAddrPort(address.String()).Port()))}
	}
	_, err = client.DiscoveryV1().EndpointSlices("shop").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("other"), Port: ptr.To[int32](1)}, port("http", corev1.ProtocolTCP, server.Addr()),
			port("names", corev1.ProtocolUDP, datagrams.LocalAddr())},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{s.other}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}}, {Addresses: []string{s.endpoint}}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func join(address string, port int) string { return net.JoinHostPort(address, strconv.Itoa(port)) }

// dial connects to an address from a namespace.
func dial(t *testing.T, from hosttest.Namespace, network, address string) (conn net.Conn) {
	t.Helper()
	from.Do(t, func() (err error) {
		conn, err = net.Dial(network, address)
		return err
	})
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(holdTimeout)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestConnectionsWaitForService(t *testing.T) { eachStack(t, testConnectionsWaitForService) }

func testConnectionsWaitForService(t *testing.T, s stack) {
	pod, client := s.idleService(t, nil)
	conns := []net.Conn{dial(t, pod, s.tcp, join(s.service, 80)), dial(t, pod, s.tcp, join(s.node, 30080)), dial(t, hosttest.Host(), s.tcp, join(s.node, 30080))}
	waitForEvent(t, client)
	s.serve(t, client)
	for i, conn := range conns {
		if _, err := conn.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil { // the response must still arrive
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); err != nil || string(got) != "hello" {
			t.Errorf("response %d: %q, %v", i, got, err)
		}
	}
}

func TestConnectionsThatPoliciesCanRestrictAreClosed(t *testing.T) {
	eachStack(t, testConnectionsThatPoliciesCanRestrictAreClosed)
}

func testConnectionsThatPoliciesCanRestrictAreClosed(t *testing.T, s stack) {
	pod, client := s.idleService(t, func(_ context.Context, client, endpoint netip.Addr) (bool, error) {
		return client.String() == s.pod && endpoint.String() == s.endpoint, nil
	})
	restricted, free := dial(t, pod, s.tcp, join(s.service, 80)), dial(t, hosttest.Host(), s.tcp, join(s.node, 30080))
	s.serve(t, client)
	if n, err := restricted.Read(make([]byte, 1)); err == nil {
		t.Errorf("the connection of the pod got %d bytes", n)
	}
	if _, err := free.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := free.Read(make([]byte, 1)); err != nil {
		t.Errorf("the connection of the host: %v", err)
	}
}

func TestDatagramsWaitForService(t *testing.T) { eachStack(t, testDatagramsWaitForService) }

func testDatagramsWaitForService(t *testing.T, s stack) {
	pod, client := s.idleService(t, nil)
	conns := []net.Conn{dial(t, pod, s.udp, join(s.service, 53)), dial(t, pod, s.udp, join(s.service, 53)), dial(t, pod, s.udp, join(s.node, 30053)),
		dial(t, hosttest.Host(), s.udp, join(s.service, 53)), dial(t, hosttest.Host(), s.udp, join(s.node, 30053))}
	long := strings.Repeat("long ", 5000) // too long for one packet
	send := func() {
		for i, conn := range conns {
			for _, text := range []string{fmt.Sprint("first of ", i), fmt.Sprint("second of ", i), long} {
				if _, err := conn.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	receive := func() {
		buffer := make([]byte, maxDatagram)
		for i, conn := range conns {
			for _, want := range []string{fmt.Sprint("first of ", i), fmt.Sprint("second of ", i), long} {
				if n, err := conn.Read(buffer); err != nil || string(buffer[:n]) != want {
					t.Fatalf("response to %.20q: %.20q (%d bytes), %v", want, buffer[:n], n, err)
				}
			}
		}
	}
	send()
	waitForEvent(t, client)
	s.serve(t, client)
	receive()
	send() // send these datagrams while the service is being unidled
	receive()
}

// echo returns the data that each connection sends.
func echo(server net.Listener) {
	for {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(conn, conn) // the test checks the response
			conn.Close()
		}()
	}
}

// echoDatagrams returns each datagram to its sender.
func echoDatagrams(server net.PacketConn) {
	buffer := make([]byte, maxDatagram)
	for {
		n, from, err := server.ReadFrom(buffer)
		if err != nil {
			return
		}
		_, _ = server.WriteTo(buffer[:n], from) // the test checks the response
	}
}

func TestConnectionsAreDroppedWithoutProxy(t *testing.T) {
	pod := hosttest.NewNamespace(t, "pod")
	pod.Connect(t, "10.128.0.1/24", "10.128.0.2/24")
	places := map[destination]target{at("172.30.0.1:80", corev1.ProtocolTCP): {}}
	// Write a table as if a process had exited without removing it.
	if err := write(t.Context(), "slipway-idle", receivers{connections: 9, group: 9}, places); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remove(context.Background(), "slipway-idle", []ipfamily.Family{ipfamily.IPv4}) })
	connected := make(chan error, 1)
	go func() {
		connected <- pod.Try(func() error {
			conn, err := net.Dial("tcp4", "172.30.0.1:80")
			if err != nil {
				return err
			}
			return conn.Close()
		})
	}()
	eventually.True(t, "first packet is dropped", func() bool {
		text, err := exec.CommandContext(t.Context(), "nft", "list", "chain", "ip", "slipway-idle", "redirected").CombinedOutput()
		return err == nil && strings.Contains(string(text), "drop") && !strings.Contains(string(text), "packets 0 ")
	})
	client := fake.NewClientset(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{idling.IdledAt: "2026-01-01T00:00:00Z"}},
		Spec:       corev1.ServiceSpec{ClusterIPs: []string{"172.30.0.1"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	})
	componenttest.Run(t, (&Proxy{Client: client, Table: "slipway-idle", Host: "host"}).Run)
	if err := <-connected; err != nil {
		t.Error(err)
	}
}

func TestRunReturnsErrorForInvalidTableName(t *testing.T) {
	err := (&Proxy{Client: fake.NewClientset(), Table: "no name"}).Run(t.Context(), func() { t.Error("ready") })
	if err == nil || !strings.Contains(err.Error(), "no name") {
		t.Errorf("got %v", err)
	}
}

func TestDisabledProxyRemovesTable(t *testing.T) {
	for _, family := range []ipfamily.Family{ipfamily.IPv4, ipfamily.IPv6} {
		if err := write(t.Context(), "slipway-idle", receivers{family: family, connections: 9, group: 9}, nil); err != nil {
			t.Fatal(err)
		}
	}
	componenttest.Run(t, (&Proxy{Table: "slipway-idle", IPv6: true, Disabled: true}).Run)
	if text, err := exec.CommandContext(t.Context(), "nft", "list", "tables").CombinedOutput(); err != nil || strings.Contains(string(text), "slipway-idle") {
		t.Errorf("tables: %s, %v", text, err)
	}
}

func TestUnknownDestinationIsClosed(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p := &Proxy{Client: fake.NewClientset()}
	h := newHolder(p)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.serve(ctx, listener)
	}()
	conn, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, _ := io.ReadAll(conn); len(got) > 0 {
		t.Errorf("got response %q", got)
	}
	listener.Close()
	<-done
}
