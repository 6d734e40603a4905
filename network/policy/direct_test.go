package policy

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/podbandwidth"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/vxlan"
)

func TestPodsHaveTheRightsThatNoPolicyRestricts(t *testing.T) {
	address := netip.MustParseAddr("10.128.0.2")
	const opens, accepts = vxlan.RightOpen | vxlan.RightKeepOpened, vxlan.RightAccept | vxlan.RightKeepAccepted
	for _, tt := range []struct {
		name        string
		device      string
		isolated    []direction
		annotations map[string]string
		missing     bool
		disabled    bool
		want        map[netip.Addr]vxlan.Local
	}{
		{name: "no policies", device: "lo", want: map[netip.Addr]vxlan.Local{address: {Device: "lo", Project: "shop", Rights: vxlan.AllRights}}},
		{name: "ingress", device: "lo", isolated: []direction{ingress}, want: map[netip.Addr]vxlan.Local{address: {Device: "lo", Project: "shop", Rights: opens}}},
		{name: "egress", device: "lo", isolated: []direction{egress}, want: map[netip.Addr]vxlan.Local{address: {Device: "lo", Project: "shop", Rights: accepts}}},
		{name: "both", device: "lo", isolated: []direction{ingress, egress}, want: map[netip.Addr]vxlan.Local{address: {Device: "lo", Project: "shop"}}},
		{name: "egress firewall", device: "lo", isolated: []direction{external}, want: map[netip.Addr]vxlan.Local{address: {Device: "lo", Project: "shop", Rights: vxlan.AllRights}}},
		{
			name: "limited bandwidth", device: "lo", annotations: map[string]string{podbandwidth.Egress: "1M"},
			want: map[netip.Addr]vxlan.Local{address: {Device: "lo", Project: "shop", Rights: vxlan.MoveOpened | vxlan.MoveAccepted}},
		},
		{
			name: "limited bandwidth and ingress", device: "lo", isolated: []direction{ingress}, annotations: map[string]string{podbandwidth.Ingress: "1M"},
			want: map[netip.Addr]vxlan.Local{address: {Device: "lo", Project: "shop", Rights: vxlan.MoveOpened}},
		},
		{
			name: "disabled", device: "lo", disabled: true,
			want: map[netip.Addr]vxlan.Local{address: {Device: "lo", Project: "shop", Rights: vxlan.RightKeepOpened | vxlan.RightKeepAccepted}},
		},
		{name: "pod that the cache lacks", device: "lo", missing: true, want: map[netip.Addr]vxlan.Local{}},
		{name: "pod without a device", device: "missing0", want: map[netip.Addr]vxlan.Local{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rules := newRuleset(ipfamily.IPv4)
			for _, d := range tt.isolated {
				rules.pods[d][address] = "chain"
			}
			var local cni.Pod
			if err := json.Unmarshal([]byte(fmt.Sprintf(`{"namespace": "shop", "name": "web", "address": %q}`, address)), &local); err != nil {
				t.Fatal(err)
			}
			local.Device = tt.device
			find := func(cni.Pod) *cachedPod {
				if tt.missing {
					return nil
				}
				return &cachedPod{ObjectMeta: metav1.ObjectMeta{Annotations: tt.annotations}}
			}
			if diff := cmp.Diff(tt.want, direct([]cni.Pod{local}, find, rules, !tt.disabled), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
}
