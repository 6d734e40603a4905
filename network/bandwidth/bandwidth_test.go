package bandwidth

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/podbandwidth"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/shaping"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

const device = "pod0123456789ab"

// attach creates the device and the lease of a pod on a host with a bridge.
func attach(t *testing.T, leases string, uid string) {
	t.Helper()
	bridge, veth := netlink.NewLinkAttrs(), netlink.NewLinkAttrs()
	bridge.Name, bridge.HardwareAddr, veth.Name = "slipway0", cni.HardwareAddress(netip.MustParseAddr("10.128.2.1")), device
	lease, err := json.Marshal(map[string]any{
		"address": "10.128.2.2", "device": device, "pod": map[string]string{"namespace": "shop", "name": "web", "uid": uid},
	})
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

	// A change while the component does not run.
	running.Stop()
	update(map[string]string{"other": "annotation"})
	componenttest.Run(t, limiter.Run)
	eventually.Equal(t, "no limits", limits, "{0 0} <nil>")
	if _, err := netlink.LinkByName("ifb0123456789ab"); err == nil {
		t.Error("the queue still exists")
	}
}
