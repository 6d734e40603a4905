package idle

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/idling"
	"github.com/slipway-platform/slipway/internal/parttest"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

func TestAConnectionIsHeldUntilThereAreEndpoints(t *testing.T) {
	pod := hosttest.NewNamespace(t, "pod")
	t.Cleanup(pod.Delete)
	pod.Connect(t, "10.128.0.1/24", "10.128.0.2/24")
	client := fake.NewClientset(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{idling.IdledAt: "2026-01-01T00:00:00Z"}},
		Spec:       corev1.ServiceSpec{ClusterIP: "172.30.0.1", Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	})
	p := &Proxy{Client: client, Table: "slipway-idle", Host: "host"}
	parttest.Run(t, p.Run)

	var conn net.Conn
	pod.Do(t, func() (err error) {
		conn, err = net.Dial("tcp4", "172.30.0.1:80")
		return err
	})
	defer conn.Close()
	eventually.Equal(t, "the event that pods are needed", func() string {
		events, err := client.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(events.Items) == 0 {
			return fmt.Sprint(err)
		}
		return events.Items[0].Reason + " " + events.Items[0].InvolvedObject.Name
	}, "NeedPods web")

	server, err := net.Listen("tcp4", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go echo(server)
	address := netip.MustParseAddrPort(server.Addr().String())
	_, err = client.DiscoveryV1().EndpointSlices("shop").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("other"), Port: ptr.To[int32](1)}, {Name: ptr.To("http"), Port: ptr.To(int32(address.Port()))}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"127.0.0.3"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}}, {Addresses: []string{"127.0.0.2"}}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil { // the answer comes nevertheless
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "hello" {
		t.Errorf("answer %q, %v", got, err)
	}
}

// echo answers each connection with what it sends.
func echo(server net.Listener) {
	for {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(conn, conn) // the test looks at what arrives
		conn.Close()
	}
}

func TestWhatIsNotForAnIdleServiceIsClosed(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p := &Proxy{Client: fake.NewClientset()}
	h := &holder{proxy: p, wakes: wakes{proxy: p}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.serve(ctx, listener)
	}()
	conn, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, _ := io.ReadAll(conn); len(got) > 0 {
		t.Errorf("answer %q", got)
	}
	listener.Close()
	<-ended
}
