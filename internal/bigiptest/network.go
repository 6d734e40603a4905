package bigiptest

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// Network describes the appliance's end of a VXLAN tunnel.
type Network struct {
	// Local is the address of the appliance's tunnel endpoint, and Gateway is the appliance's
	// address in the tunnel's network. Both are invalid if the appliance has no tunnel.
	Local   netip.Addr
	Gateway netip.Prefix
	// ID is the network's ID, and Port is the tunnel's UDP port.
	ID, Port int
	// Endpoints maps the MAC address in each record to the remote endpoint's address.
	Endpoints map[string]netip.Addr
}

// version returns the first two numbers of the TMOS version.
func (a *Appliance) version() (major, minor int) {
	numbers := strings.Split(a.options.Version, ".")
	major, _ = strconv.Atoi(numbers[0])
	minor, _ = strconv.Atoi(numbers[1])
	return major, minor
}

// checkNetwork checks a network object.
func (a *Appliance) checkNetwork(pattern string, o *object) *rejection {
	switch pattern {
	case "net/tunnels/vxlan":
		if a.options.Unlicensed {
			return refuse(http.StatusBadRequest, "01070356:3: SDN Services feature not licensed.")
		}
	case "net/tunnels/tunnel":
		if a.objects["net/tunnels/vxlan/"+escape(o.text("profile"))] == nil {
			return missing("profile", o.text("profile"))
		}
		if a.objects["net/fdb/tunnel/"+escape(o.fullPath)] == nil {
			a.put("net/fdb/tunnel", o.fullPath, nil)
		}
	case "net/self":
		_, err := netip.ParsePrefix(o.text("address"))
		if a.objects["net/tunnels/tunnel/"+escape(o.text("vlan"))] == nil || err != nil {
			return missing("VLAN", o.text("vlan"))
		}
	case "net/fdb/tunnel/*/records":
		if _, err := netip.ParseAddr(o.text("endpoint")); err != nil {
			return refuse(http.StatusBadRequest, "01070734:3: %v", err)
		}
	}
	return nil
}

// announce reports a network change to the Network option.
func (a *Appliance) announce(o *object) {
	if o.collection == "net/tunnels/tunnel" && a.objects[o.path()] == nil {
		a.remove("net/fdb/tunnel/" + escape(o.fullPath))
	}
	if a.options.Network != nil && strings.HasPrefix(o.collection, "net/") {
		a.options.Network(a.network())
	}
}

// network returns the current network.
func (a *Appliance) network() (n Network) {
	n.Endpoints = map[string]netip.Addr{}
	for _, tunnel := range a.list("net/tunnels/tunnel") {
		n.Local, _ = netip.ParseAddr(tunnel.text("localAddress"))
		key, _ := tunnel.attributes["key"].(float64)
		n.ID = int(key)
		if profile := a.objects["net/tunnels/vxlan/"+escape(tunnel.text("profile"))]; profile != nil {
			port, _ := profile.attributes["port"].(float64)
			n.Port = int(port)
		}
		for _, record := range a.list("net/fdb/tunnel/" + escape(tunnel.fullPath) + "/records") {
			n.Endpoints[record.fullPath], _ = netip.ParseAddr(record.text("endpoint"))
		}
		for _, self := range a.list("net/self") {
			if self.text("vlan") == tunnel.fullPath {
				n.Gateway, _ = netip.ParsePrefix(self.text("address"))
			}
		}
	}
	return n
}
