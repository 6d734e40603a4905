package f5

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
)

// Object names for native integration.
const (
	tunnelProfile = "vxlan-ose"
	tunnelName    = "vxlan5000"
	gatewayName   = "openshift_vxlan_gateway"
)

// readTunnel creates the tunnel and the appliance's address in the pod network, and reads the
// tunnel's forwarding database. The tunnel has network ID 0, so that the appliance can reach the
// pods in all projects.
func (a *Appliance) readTunnel(ctx context.Context, records *objects[string]) error {
	if err := a.ensureTunnel(ctx); err != nil {
		return fmt.Errorf("set up native integration: %w; the appliance needs the license sdn-services", err)
	}
	*records = objects[string]{
		collection: "net/fdb/tunnel/" + escape(a.config.Partition+"/"+tunnelName) + "/records",
		create:     func(endpoint string) map[string]any { return map[string]any{"endpoint": endpoint} },
		change:     func(endpoint string) map[string]any { return map[string]any{"endpoint": endpoint} },
	}
	return fill(ctx, a.client, records, "", func(i struct{ Name, Endpoint string }) (string, string, bool) {
		return i.Name, i.Endpoint, true
	})
}

// ensureTunnel creates the tunnel's objects. Each object refers to the previous object, and the
// appliance does not delete an object that is in use. Therefore, if an object's value differs,
// ensureTunnel first deletes that object and all objects after it, starting with the last.
func (a *Appliance) ensureTunnel(ctx context.Context) error {
	partition := a.config.Partition
	objects := []struct {
		collection, name, key string
		value                 any // desired value of the attribute key
		body                  map[string]any
	}{
		{"net/tunnels/vxlan", tunnelProfile, "port", a.port, map[string]any{"floodingType": "multipoint"}},
		{"net/tunnels/tunnel", tunnelName, "localAddress", a.config.Internal.String(), map[string]any{"key": 0, "profile": partition + "/" + tunnelProfile}},
		{"net/self", gatewayName, "address", a.config.Gateway.String(), map[string]any{
			"vlan": partition + "/" + tunnelName, "allowService": "all", "trafficGroup": "/Common/traffic-group-local-only",
		}},
	}
	differs := false
	var obsolete []string // in reverse order
	for _, o := range objects {
		path, present := o.collection+"/"+escape(partition+"/"+o.name), map[string]any{}
		switch err := a.client.get(ctx, path, &present); {
		case is(err, http.StatusNotFound):
			continue
		case err != nil:
			return err
		}
		if differs = differs || fmt.Sprint(present[o.key]) != fmt.Sprint(o.value); differs {
			obsolete = append([]string{path}, obsolete...)
		}
	}
	for _, path := range obsolete {
		if err := a.client.call(ctx, http.MethodDelete, path, nil, nil); err != nil {
			return fmt.Errorf("replace %q of the appliance: %w", path, err)
		}
	}
	for _, o := range objects {
		o.body[o.key] = o.value
		if err := ensureObject(ctx, a.client, o.collection, partition, o.name, o.body); err != nil {
			return err
		}
	}
	return nil
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
