package nodeprocess

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/router"
	"github.com/slipway-platform/slipway/router/environment"
	"github.com/slipway-platform/slipway/router/haproxy"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// runsRouter reports whether this host's node runs a router.
func (h *Host) runsRouter() bool {
	return !h.Node.Slipway.Router.Disabled && (!h.Joined() || h.Membership.Router)
}

// router returns the component that serves routes on the node's own ports.
func (h *Host) router() (component.Component, error) {
	if !h.runsRouter() {
		return &router.Disabled{Dir: h.RouterDir()}, nil
	}
	config, err := pki.ReadKubeconfig(h.Credentials.RouterKubeconfig)
	if err != nil {
		return nil, err
	}
	settings, settingsErr := environment.Read(h.RouterEnvironment())
	r := &router.Router{
		Config: config, Settings: settings, Dir: h.RouterDir(), User: haproxy.Account(), Outlive: true,
		Domain: h.Master.RoutingConfig.Subdomain, ServiceCA: h.Credentials.ServiceCA, ShutdownTimeout: 2 * time.Second,
	}
	serve := func(ctx context.Context, ready func(), note func(string)) (err error) {
		if settingsErr != nil {
			return fmt.Errorf("read slipway.router.environment of the NodeConfig: %w", settingsErr)
		}
		if r.Program, err = haproxy.FindProgram(); err != nil {
			return err
		}
		r.Report = note
		return r.Run(ctx, ready)
	}
	return &component.Optional{Component: "router", Serve: serve}, nil
}
