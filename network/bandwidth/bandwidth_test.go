package bandwidth

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/podbandwidth"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/shaping"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

const device = "pod0123456789ab"

// attach creates a pod's device and lease on a host with a bridge.
func attach(t *testing.T, leases string, uid string, second ...string) {
	t.Helper()
	bridge, veth := netlink.NewLinkAttrs(), netlink.NewLinkAttrs()
	bridge.Name, bridge.HardwareAddr, veth.Name = "slipway0", cni.HardwareAddress(netip.MustParseAddr("10.128.2.1")), device
	t.Cleanup(func() {
		for _, name := range []string{device, "ifb0123456789ab", "slipway0"} {
			if link, err := netlink.LinkByName(name); err == nil {
				_ = netlink.LinkDel(link) // the namespace of the tests is deleted after the tests
			}
		}
	})
	content := map[string]any{
		"address": "10.128.2.2", "device": device, "pod": map[string]string{"namespace": "shop", "name": "web", "uid": uid},
	}
	if len(second) > 0 {
		content["secondAddress"] = second[0]
	}
	lease, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		netlink.LinkAdd(&netlink.Bridge{LinkAttrs: bridge}),
		netlink.LinkAdd(&netlink.Veth{LinkAttrs: veth, PeerName: "peer"}),
		os.WriteFile(filepath.Join(leases, "10.128.2.2.json"), lease, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLimitsFollowAnnotations(t *testing.T) {
	leases := t.TempDir()
	attach(t, leases, "1")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", Annotations: map[string]string{
		podbandwidth.Ingress: "10M", podbandwidth.Egress: "1000001",
	}}, Spec: corev1.PodSpec{NodeName: "here"}}
	client := fake.NewClientset(pod)
	limits := func() string {
		got, err := shaping.Read(device)
		return fmt.Sprint(got, err)
	}
	limiter := &Limiter{NodeName: "here", Client: client, Bridge: "slipway0", LeaseDir: leases}
	running := componenttest.Run(t, limiter.Run)
	eventually.Equal(t, "limits of a pod that runs", limits, "{10000000 1000000} <nil>")

	update := func(annotations map[string]string) {
		t.Helper()
		changed := pod.DeepCopy()
		changed.Annotations = annotations
		if _, err := client.CoreV1().Pods("shop").Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	update(map[string]string{podbandwidth.Ingress: "20M", podbandwidth.Egress: "2M"})
	eventually.Equal(t, "changed limits", limits, "{20000000 2000000} <nil>")
	update(map[string]string{podbandwidth.Egress: "2M"})
	eventually.Equal(t, "one limit", limits, "{0 2000000} <nil>")

	// Change the limits while the component is not running.
	running.Stop()
	update(map[string]string{"other": "annotation"})
	componenttest.Run(t, limiter.Run)
	eventually.Equal(t, "no limits", limits, "{0 0} <nil>")
	if _, err := netlink.LinkByName("ifb0123456789ab"); err == nil {
		t.Error("the queue still exists")
	}
}

// filters returns the protocols of the filters that redirect a pod's packets to the pod's queue.
func filters(t *testing.T) string {
	t.Helper()
	link, err := netlink.LinkByName(device)
	if err != nil {
		t.Fatal(err)
	}
	list, err := netlink.FilterList(link, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		t.Fatal(err)
	}
	var count4, count6 int
	for _, filter := range list {
		if u32, ok := filter.(*netlink.U32); !ok || u32.RedirIndex == 0 {
			continue
		}
		if filter.Attrs().Protocol == unix.ETH_P_IP {
			count4++
		} else {
			count6++
		}
	}
	return fmt.Sprintf("%d of IPv4, %d of IPv6", count4, count6)
}

func TestLimitsHoldForIPv6(t *testing.T) {
	networks := dualstack.Networks{
		IPv4: []dualstack.Network{{Prefix: netip.MustParsePrefix("10.128.0.0/14"), HostBits: 9}},
		IPv6: dualstack.Network{Prefix: netip.MustParsePrefix("fd01::/48"), HostBits: 64},
	}
	for name, test := range map[string]struct {
		address  string
		networks dualstack.Networks
		want     string
	}{
		"of the pod":            {"fd01:0:0:1::2", networks, "1 of IPv4, 4 of IPv6"},
		"of an earlier network": {"fd05:0:0:1::2", networks, "1 of IPv4, 0 of IPv6"},
		"without IPv6":          {"fd01:0:0:1::2", dualstack.Networks{}, "1 of IPv4, 0 of IPv6"},
	} {
		t.Run(name, func(t *testing.T) {
			leases := t.TempDir()
			attach(t, leases, "1", test.address)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", Annotations: map[string]string{
				podbandwidth.Egress: "1M",
			}}, Spec: corev1.PodSpec{NodeName: "here"}}
			client := fake.NewClientset(pod)
			limiter := &Limiter{NodeName: "here", Client: client, Bridge: "slipway0", LeaseDir: leases, DualStack: test.networks}
			componenttest.Run(t, limiter.Run)
			eventually.Equal(t, "filters", func() string { return filters(t) }, test.want)

			removeIPv6Filter(t)
			pod = pod.DeepCopy()
			pod.Annotations["other"] = "annotation" // any change triggers a reconciliation
			if _, err := client.CoreV1().Pods("shop").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			eventually.Equal(t, "repaired filters", func() string { return filters(t) }, test.want)
		})
	}
}

// removeIPv6Filter removes one of the device's IPv6 filters, if it has any.
func removeIPv6Filter(t *testing.T) {
	t.Helper()
	link, err := netlink.LinkByName(device)
	if err != nil {
		t.Fatal(err)
	}
	list, err := netlink.FilterList(link, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		t.Fatal(err)
	}
	for _, filter := range list {
		if u32, ok := filter.(*netlink.U32); ok && u32.RedirIndex != 0 && filter.Attrs().Protocol == unix.ETH_P_IPV6 {
			if err := netlink.FilterDel(filter); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}
