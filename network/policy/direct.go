package policy

import (
	"net/netip"

	"github.com/slipway-platform/slipway/internal/podbandwidth"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/vxlan"
)

// direct returns this node's pods that can have direct connections to pods on other nodes. Direct
// connections bypass the rules (see vxlan.Local).
//
// Egress firewalls and egress addresses do not affect direct connections, because they apply only
// to packets that leave the pod network. In multitenant mode, package vxlan's programs check the
// networks of both pods, as the rules do.
//
// find returns a pod in the cache, or nil. If isEnabled is false, only existing connections are
// direct.
func direct(local []cni.Pod, find func(cni.Pod) *cachedPod, rules *ruleset, isEnabled bool) map[netip.Addr]vxlan.Local {
	pods, devices := map[netip.Addr]vxlan.Local{}, cni.ListDevices()
	for _, l := range local {
		p := find(l)
		if p == nil || !devices.Have(l) || !l.Address.Is4() {
			continue // for example, the cache does not contain the pod's labels and annotations yet
		}
		rights := vxlan.AllRights
		if _, isolated := rules.pods[egress][l.Address]; isolated {
			rights &^= vxlan.RightOpen | vxlan.RightKeepOpened
		}
		if _, isolated := rules.pods[ingress][l.Address]; isolated {
			rights &^= vxlan.RightAccept | vxlan.RightKeepAccepted
		}
		// Direct connections would bypass the queues that limit a pod's bandwidth.
		isLimited := p.Annotations[podbandwidth.Ingress] != "" || p.Annotations[podbandwidth.Egress] != ""
		if !isEnabled || isLimited {
			rights &^= vxlan.RightOpen | vxlan.RightAccept
		}
		if isLimited {
			rights = moved(rights)
		}
		pods[l.Address] = vxlan.Local{Device: l.Device, Rights: rights, Project: l.Namespace}
	}
	return pods
}

// moved replaces the rights to continue existing connections with the rights to move them to the
// kernel's network stack. If a policy checks connections, the pod has no right to continue them, so
// they do not move.
func moved(rights vxlan.Rights) vxlan.Rights {
	if rights&vxlan.RightKeepOpened != 0 {
		rights ^= vxlan.RightKeepOpened | vxlan.MoveOpened
	}
	if rights&vxlan.RightKeepAccepted != 0 {
		rights ^= vxlan.RightKeepAccepted | vxlan.MoveAccepted
	}
	return rights
}
