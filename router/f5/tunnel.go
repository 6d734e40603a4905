package f5

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
)

// Object names for native integration. vxlanPort is the VXLAN port on the nodes.
const (
	tunnelProfile = "vxlan-ose"
	tunnelName    = "vxlan5000"
	gatewayName   = "openshift_vxlan_gateway"
	vxlanPort     = 4789
)

// readTunnel creates the tunnel and the appliance's address in the pod network, and reads the
// tunnel's forwarding database. The tunnel has network ID 0, so that the appliance can reach the
// pods in all projects.
func (a *Appliance) readTunnel(ctx context.Context, records *objects[string]) error {
	partition := a.config.Partition
	err := ensureObject(ctx, a.client, "net/tunnels/vxlan", partition, tunnelProfile, map[string]any{
		"floodingType": "multipoint", "port": vxlanPort,
	})
	if err != nil {
		return fmt.Errorf("native integration, which needs the license sdn-services on the appliance: %w", err)
	}
	local := a.config.Internal.String()
	if err := a.replace(ctx, "net/tunnels/tunnel", tunnelName, map[string]any{"localAddress": local}, map[string]any{
		"localAddress": local, "key": 0, "profile": partition + "/" + tunnelProfile,
	}); err != nil {
		return err
	}
	gateway := a.config.Gateway.String()
	if err := a.replace(ctx, "net/self", gatewayName, map[string]any{"address": gateway}, map[string]any{
		"address": gateway, "vlan": partition + "/" + tunnelName, "allowService": "all", "trafficGroup": "/Common/traffic-group-local-only",
	}); err != nil {
		return err
	}
	*records = objects[string]{
		collection: "net/fdb/tunnel/" + escape(partition+"/"+tunnelName) + "/records",
		create:     func(endpoint string) map[string]any { return map[string]any{"endpoint": endpoint} },
		change:     func(endpoint string) map[string]any { return map[string]any{"endpoint": endpoint} },
	}
	return fill(ctx, a.client, records, "", func(i struct{ Name, Endpoint string }) (string, string, bool) {
		return i.Name, i.Endpoint, true
	})
}

// replace creates an object. If the object already exists with different values, replace deletes it
// first.
func (a *Appliance) replace(ctx context.Context, collection, name string, values, body map[string]any) error {
	path := collection + "/" + escape(a.config.Partition+"/"+name)
	present := map[string]any{}
	err := a.client.get(ctx, path, &present)
	if err != nil && !is(err, http.StatusNotFound) {
		return err
	}
	for key, value := range values {
		if err == nil && present[key] != value {
			if err := a.client.call(ctx, http.MethodDelete, path, nil, nil); err != nil {
				return fmt.Errorf("replace %q of the appliance: %w", name, err)
			}
		}
	}
	return ensureObject(ctx, a.client, collection, a.config.Partition, name, body)
}

// syncRecords updates the tunnel's forwarding database to contain all nodes.
func (a *Appliance) syncRecords(ctx context.Context, nodes []netip.Addr) error {
	if !a.config.Native() {
		return nil
	}
	desired := map[string]string{}
	for _, node := range nodes {
		if node.Is4() {
			desired[recordName(node)] = node.String()
		}
	}
	if err := a.known.records.ensure(ctx, a.client, desired); err != nil {
		return err
	}
	return a.known.records.prune(ctx, a.client, desired)
}

// recordName returns the MAC address that is the name of a node's record, as in OpenShift 3. The
// appliance learns pod addresses by sending ARP requests to all records.
func recordName(node netip.Addr) string {
	octets := node.As4()
	return fmt.Sprintf("0a:0a:%02x:%02x:%02x:%02x", octets[0], octets[1], octets[2], octets[3])
}
