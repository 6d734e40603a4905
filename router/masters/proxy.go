package masters

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/router/haproxy"
)

// Proxy is the component that runs a load balancer's HAProxy. When the masters change, HAProxy
// keeps running and keeps the connections to the remaining masters. If HAProxy rejects a
// configuration, it keeps using the previous configuration.
type Proxy struct {
	// Config describes the load balancer. Its Servers field contains the initial masters.
	Config Config
	// Program is the path to the HAProxy program. Dir is HAProxy's working directory.
	Program, Dir string

	once   sync.Once
	engine *haproxy.Engine
}

const (
	// reloadInterval is the minimum time between two starts of HAProxy.
	reloadInterval = 5 * time.Second
	// shutdownTimeout limits how long open connections can continue when the load balancer stops.
	// It is short because clients keep their connections open for hours and reconnect.
	shutdownTimeout = time.Second
)

// Name returns the component's name.
func (*Proxy) Name() string { return "haproxy" }

// run returns the HAProxy engine. If the load balancer is killed, its HAProxy continues to serve
// requests until the next HAProxy takes over.
func (p *Proxy) run() *haproxy.Engine {
	p.once.Do(func() {
		p.engine = &haproxy.Engine{
			Program: p.Program, Dir: p.Dir, Interval: reloadInterval, ShutdownTimeout: shutdownTimeout, Outlive: true,
		}
	})
	return p.engine
}

// Run balances connections until ctx is done. It calls ready when HAProxy is serving.
func (p *Proxy) Run(ctx context.Context, ready func()) error {
	if err := p.Set(p.Config.Servers); err != nil {
		return err
	}
	return p.run().Run(ctx, ready)
}

// Set replaces the masters. If Set returns an error, the load balancer keeps the previous masters.
func (p *Proxy) Set(servers []Server) error {
	config := p.Config
	config.Servers, config.Socket = servers, filepath.Join(p.Dir, "run", "haproxy.sock")
	frame, shape, err := config.parts()
	if err != nil {
		return err
	}
	backend := &haproxy.Backend{Name: backendName, Shape: shape}
	for _, s := range servers {
		host, port, err := net.SplitHostPort(s.Address)
		if err != nil {
			return fmt.Errorf("parse address of master %q: %w", s.Name, err)
		}
		backend.Servers = append(backend.Servers, haproxy.Server{
			Name: s.Name, IP: host, Port: port, Weight: 1, Options: checkOptions, Checked: true,
		})
	}
	p.run().Set(&haproxy.Config{Frame: frame, Backends: []*haproxy.Backend{backend}, Files: map[string][]byte{}})
	return nil
}
