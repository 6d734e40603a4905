package masters

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// balancer is an HAProxy process on a separate machine that balances connections to the masters'
// API servers. The machine has additional addresses that clients connect from.
type balancer struct {
	*kit.Machine
	t       *testing.T
	file    string
	sources []netip.Addr
	stop    func()
}

// newBalancer creates the machine, and configures its address as the masters' public address. It
// must be called before the cluster starts.
func newBalancer(t *testing.T, c *kit.Cluster) *balancer {
	t.Helper()
	b := &balancer{t: t, file: filepath.Join(t.TempDir(), "haproxy.cfg"), stop: func() {}}
	var addresses []string
	network := c.Address.As4()
	// Use so many addresses that the load balancer sends some of them to each master.
	for i := range byte(100) {
		network[3] = 100 + i
		b.sources = append(b.sources, netip.AddrFrom4(network))
		addresses = append(addresses, netip.AddrFrom4(network).String()+"/24")
	}
	b.Machine = c.Neighbor(addresses...)
	file, err := os.OpenFile(c.MasterFile(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(file, "masterPublicURL: https://%s:8443\n", b.Address)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

// configure writes HAProxy's configuration for the given number of masters, and starts HAProxy.
func (b *balancer) configure(c *kit.Cluster, masters int) {
	b.t.Helper()
	c.WaitFor(fmt.Sprintf("%d masters of the load balancer", masters), func(context.Context) error {
		result := c.Slipway("lb", "config")
		if result.Code != 0 || strings.Count(result.Stdout, "\n  server ") != masters {
			return fmt.Errorf("slipway lb config: %s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
	for _, want := range []string{"has changed", "is unchanged"} {
		if output := c.MustSlipway("lb", "config", "--output", b.file); !strings.Contains(output, want) {
			b.t.Errorf("slipway lb config: got %q, want %q", output, want)
		}
	}
	b.start()
}

// start starts HAProxy, or restarts it as `systemctl restart haproxy` does.
func (b *balancer) start() {
	b.t.Helper()
	b.stop()
	ctx, cancel := context.WithCancel(context.Background())
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program = "/usr/sbin/haproxy"
	}
	// Without -W, HAProxy runs as a single process.
	command := exec.CommandContext(ctx, program, "-db", "-f", b.file)
	log, err := os.Create(filepath.Join(b.t.TempDir(), "log"))
	if err != nil {
		b.t.Fatal(err)
	}
	command.Stdout, command.Stderr = log, log
	if err := b.Do(command.Start); err != nil {
		b.t.Fatalf("start HAProxy: %v", err)
	}
	stopped := false
	b.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		_ = command.Wait() // Wait returns an error because cancel killed the process
		log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && b.t.Failed() {
			b.t.Logf("HAProxy:\n%s", text)
		}
	}
	b.t.Cleanup(b.stop)
}

// url returns the URL of the API servers behind the load balancer.
func (b *balancer) url() string { return "https://" + net.JoinHostPort(b.Address.String(), "8443") }

// dial connects to the load balancer from the given address of the machine.
func (b *balancer) dial(ctx context.Context, source netip.Addr) (conn net.Conn, err error) {
	err = b.Do(func() error {
		dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0))}
		conn, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(b.Address.String(), "8443"))
		return err
	})
	return conn, err
}

// master returns the name of the master that serves clients with the given source address. It
// verifies that the master's serving certificate is valid for the load balancer's address.
func (b *balancer) master(ctx context.Context, c *kit.Cluster, source netip.Addr) (string, error) {
	config, err := rest.TLSConfigFor(c.Config)
	if err != nil {
		return "", err
	}
	conn, err := b.dial(ctx, source)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	config.ServerName = b.Address.String()
	client := tls.Client(conn, config)
	if err := client.HandshakeContext(ctx); err != nil {
		return "", err
	}
	for _, name := range client.ConnectionState().PeerCertificates[0].DNSNames {
		if name == "first" || name == "second" || name == "third" {
			return name, nil
		}
	}
	return "", errors.New("the certificate does not contain a master")
}

// waitMaster waits until a client with the given source address reaches the named master. If the
// last argument is false, it waits until the client reaches another master.
func (b *balancer) waitMaster(c *kit.Cluster, source netip.Addr, name string, is bool) {
	c.WaitFor(fmt.Sprintf("load balancer uses master %s: %t", name, is), func(ctx context.Context) error {
		got, err := b.master(ctx, c, source)
		if err == nil && (got == name) != is {
			err = fmt.Errorf("it uses %s", got)
		}
		return err
	})
}

// source returns a source address whose clients reach the named master. The master must be serving
// requests.
func (b *balancer) source(c *kit.Cluster, master string) (source netip.Addr) {
	c.WaitFor("client of master "+master, func(ctx context.Context) error {
		var errs []error
		for _, source = range b.sources {
			name, err := b.master(ctx, c, source)
			if name == master {
				return nil
			}
			errs = append(errs, err)
		}
		return fmt.Errorf("no address reaches the master: %w", errors.Join(errs...))
	})
	return source
}

// client returns a copy of the cluster whose API client connects to the load balancer from the
// given address.
func (b *balancer) client(t *testing.T, c *kit.Cluster, source netip.Addr) *kit.Cluster {
	t.Helper()
	clone := c.For(t)
	clone.Config = rest.CopyConfig(c.Config)
	clone.Config.Host = b.url()
	clone.Config.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return b.dial(ctx, source) }
	client, err := kubernetes.NewForConfig(clone.Config)
	if err != nil {
		t.Fatal(err)
	}
	clone.Client = client
	return clone
}

// checkWithoutBalancer checks that hosts do not depend on the load balancer: while it is stopped,
// the hosts renew their leases, and services keep their endpoints.
func checkWithoutBalancer(t *testing.T, b *balancer, c, node *kit.Cluster) {
	t.Helper()
	b.stop()
	if name, err := b.master(t.Context(), c, b.sources[0]); err == nil {
		t.Errorf("the load balancer of master %s responds after it was stopped", name)
	}
	start := time.Now()
	c.WaitFor("renewal of each node's lease", func(ctx context.Context) error {
		leases, err := c.Client.CoordinationV1().Leases("kube-node-lease").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(leases.Items) != 4 {
			return fmt.Errorf("%d leases exist, want 4", len(leases.Items))
		}
		for _, lease := range leases.Items {
			if renewed := lease.Spec.RenewTime; renewed == nil || renewed.Before(&metav1.MicroTime{Time: start}) {
				return fmt.Errorf("node %s renewed its lease at %v", lease.Name, renewed)
			}
		}
		return nil
	})
	waitApplication(node)
	b.start()
	b.waitMaster(c, b.sources[0], "", false)
}
