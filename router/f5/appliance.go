package f5

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/router/model"
)

// Appliance is a BIG-IP appliance that a router configures. It is not safe for concurrent use.
type Appliance struct {
	config *Config
	client *client
	known  *inventory // objects on the appliance; nil before they are read
	port   int        // VXLAN port of the tunnel
}

// New returns an appliance. It sends no requests.
func New(config *Config) *Appliance { return &Appliance{config: config, client: newClient(config)} }

// State is the desired state of the appliance.
type State struct {
	// Routes contains the admitted routes with the endpoints of their services.
	Routes *model.State
	// Services contains the endpoints of all services. The appliance has a pool for each service
	// that has endpoints.
	Services map[model.ServiceUnitKey][]model.Endpoint
	// ServiceCA contains the service CA certificates in PEM format, or is empty.
	ServiceCA string
	// Nodes lists the node addresses for native integration.
	Nodes []netip.Addr
	// VXLANPort is the nodes' VXLAN port; the default is 4789.
	VXLANPort int
}

// inventory contains the objects on the appliance that belong to the router.
type inventory struct {
	pools              objects[pool]
	policies           [2]objects[rule] // policies for HTTP and HTTPS
	passthrough        map[string]string
	certificates, keys objects[string]
	clients            objects[clientProfile]
	servers            objects[serverProfile]
	// attachedClients and attachedServers contain the profiles that are attached to the HTTPS
	// virtual server.
	attachedClients, attachedServers objects[string]
	records                          objects[string] // records in the tunnel's forwarding database
}

// Forget makes the next Sync read the appliance's objects again.
func (a *Appliance) Forget() { a.known = nil }

// Sync updates the appliance to match the state. The first Sync, and each Sync after a failure or
// Forget, reads the appliance's objects first. If the appliance rejects some objects, Sync
// continues with the rest of the objects and returns one error for all rejected objects.
func (a *Appliance) Sync(ctx context.Context, state State) error {
	if port := cmp.Or(state.VXLANPort, networkplugin.VXLANPort); port != a.port {
		a.port, a.known = port, nil
	}
	if a.known == nil {
		objects, err := a.read(ctx)
		if err != nil {
			return err
		}
		a.known = objects
	}
	desired := build(a.config.Partition, state.ServiceCA, state.Routes, state.Services)
	err := errors.Join(a.apply(ctx, desired), a.syncRecords(ctx, state.Nodes))
	if err != nil {
		a.known = nil
	}
	return err
}

// apply updates the appliance to match a configuration. It creates an object before other objects
// reference it, and deletes an object after the last reference has been removed.
func (a *Appliance) apply(ctx context.Context, desired *configuration) error {
	k, c := a.known, a.client
	clients := attachments(a.config.Partition, "clientside", desired.clients)
	servers := attachments(a.config.Partition, "serverside", desired.servers)
	steps := []func() error{
		func() error { return a.ensureFiles(ctx, &k.certificates, desired.certificates) },
		func() error { return a.ensureFiles(ctx, &k.keys, desired.keys) },
		func() error { return k.clients.ensure(ctx, c, desired.clients) },
		func() error { return k.servers.ensure(ctx, c, desired.servers) },
		func() error { return a.ensurePools(ctx, desired.pools) },

		func() error { return k.attachedClients.prune(ctx, c, clients) },
		func() error { return k.attachedServers.prune(ctx, c, servers) },
		func() error { return k.attachedClients.ensure(ctx, c, clients) },
		func() error { return k.attachedServers.ensure(ctx, c, servers) },
		func() error { return a.syncPassthrough(ctx, desired.passthrough) },
		func() error { return k.policies[0].ensure(ctx, c, desired.insecure) },
		func() error { return k.policies[1].ensure(ctx, c, desired.secure) },

		func() error { return k.policies[0].prune(ctx, c, desired.insecure) },
		func() error { return k.policies[1].prune(ctx, c, desired.secure) },
		func() error { return k.clients.prune(ctx, c, desired.clients) },
		func() error { return k.servers.prune(ctx, c, desired.servers) },
		func() error { return k.keys.prune(ctx, c, desired.keys) },
		func() error { return k.certificates.prune(ctx, c, desired.certificates) },
		func() error { return a.prunePools(ctx, desired.pools) },
	}
	var failures []error
	for _, step := range steps {
		err := step()
		var failure *Failure
		failures = append(failures, err)
		if err != nil && !errors.As(err, &failure) {
			break // the appliance does not respond
		}
	}
	return errors.Join(failures...)
}

// ensureFiles uploads missing files.
func (a *Appliance) ensureFiles(ctx context.Context, o *objects[string], desired map[string]string) error {
	return o.each(desired, func(name string) error {
		if _, exists := o.actual[name]; exists {
			return nil
		}
		if err := a.install(ctx, o.collection, name, []byte(desired[name])); err != nil {
			return err
		}
		o.actual[name] = ""
		return nil
	})
}

// syncPassthrough updates the data group to contain the hosts of all passthrough routes.
func (a *Appliance) syncPassthrough(ctx context.Context, desired map[string]string) error {
	if maps.Equal(a.known.passthrough, desired) {
		return nil
	}
	records := []map[string]string{}
	for host, pool := range desired {
		records = append(records, map[string]string{"name": host, "data": pool})
	}
	path := "ltm/data-group/internal/" + escape(a.config.Partition+"/"+dataGroup)
	if err := a.client.call(ctx, http.MethodPatch, path, map[string]any{"records": records}, nil); err != nil {
		return fmt.Errorf("change data group: %w", err)
	}
	a.known.passthrough = maps.Clone(desired)
	return nil
}

// attachments returns the attachments of profiles to the HTTPS virtual server, keyed by the
// profiles' full paths.
func attachments[T any](partition, side string, profiles map[string]T) map[string]string {
	all := map[string]string{}
	for name := range profiles {
		all[partition+"/"+name] = side
	}
	return all
}
