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

// Proxy is the component that runs the HAProxy of a load balancer. The masters can change while it
// runs: HAProxy keeps its process, and the connections to the other masters. If HAProxy rejects a
// configuration, it continues with the previous one.
type Proxy struct {
	// Config describes the load balancer. Its Servers are the masters at the start.
	Config Config
	// Program is the path of HAProxy. Dir is its working directory.
	Program, Dir string

	once   sync.Once
	engine *haproxy.Engine
}

const (
	// reloadInterval is the minimum time between two starts of HAProxy.
	reloadInterval = 5 * time.Second
	// shutdownTimeout is the time for open connections when the load balancer stops. Clients keep
	// theirs open for hours, and connect again.
	shutdownTimeout = time.Second
)

// Name returns the component's name.
func (*Proxy) Name() string { return "haproxy" }

// run returns HAProxy's engine. A HAProxy whose load balancer was killed continues to serve until
// the next one takes over.
func (p *Proxy) run() *haproxy.Engine {
	p.once.Do(func() {
		p.engine = &haproxy.Engine{
			Program: p.Program, Dir: p.Dir, Interval: reloadInterval, ShutdownTimeout: shutdownTimeout, Outlive: true,
		}
	})
	return p.engine
}

// Run balances until ctx ends. It calls ready when HAProxy serves.
func (p *Proxy) Run(ctx context.Context, ready func()) error {
	if err := p.Set(p.Config.Servers); err != nil {
		return err
	}
	return p.run().Run(ctx, ready)
}

// Set replaces the masters. After an error, the load balancer keeps the previous ones.
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
			return fmt.Errorf("read address of master %q: %w", s.Name, err)
		}
		backend.Servers = append(backend.Servers, haproxy.Server{
			Name: s.Name, IP: host, Port: port, Weight: 1, Options: checkOptions, Checked: true,
		})
	}
	p.run().Set(&haproxy.Config{Frame: frame, Backends: []*haproxy.Backend{backend}, Files: map[string][]byte{}})
	return nil
}
