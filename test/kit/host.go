package kit

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
)

// Host is an additional host of a cluster, with its own machine and data directory. Its methods for
// objects, such as Apply, act on the whole cluster.
type Host = Cluster

// Join starts a host that joins the cluster as a node, and removes it at the end of the test. The
// cluster must have Options.Segment set.
func (c *Cluster) Join(name string, options Options) *Host {
	c.t.Helper()
	host := c.NewHost(name, options)
	host.JoinWith(c.APIURL(), c.Token())
	return host
}

// JoinMaster starts a host that joins the cluster as a master, and removes it at the end of the
// test. The host's methods for objects use its own API server. The cluster must have
// Options.Segment set.
func (c *Cluster) JoinMaster(name string, options Options) *Host {
	c.t.Helper()
	return c.JoinMasterAt(c.APIURL(), c.MasterToken(), name, options)
}

// JoinMasterAt works like JoinMaster but uses the given URL, such as a load balancer's, and an
// existing token.
func (c *Cluster) JoinMasterAt(url, token, name string, options Options) *Host {
	c.t.Helper()
	host := c.NewHost(name, options)
	host.JoinWith(url, token)
	host.master = nil
	host.Connect()
	return host
}

// NewHost creates a machine and its node configuration. The machine is on the cluster's network
// segment or, with Options.Segment, on its own segment. NewHost does not start anything.
func (c *Cluster) NewHost(name string, options Options) *Host {
	c.t.Helper()
	host, err := c.newHost(name, options)
	if err != nil {
		c.t.Fatal(err)
	}
	host.t = c.t
	c.t.Cleanup(func() {
		if host.t.Failed() {
			host.diagnose(host.t)
		}
		for _, problem := range append(host.leave(), host.end()...) {
			host.t.Error(problem)
		}
	})
	return host
}

// joined reports whether the host has joined a cluster as a node.
func (c *Cluster) joined() bool {
	_, err := os.Stat(c.Path("node", "membership.json"))
	return err == nil
}

// leave removes a joined host's node from the cluster, so that another host can use the node's
// name.
func (c *Cluster) leave() []error {
	if !c.joined() || keepsClusters() {
		return nil
	}
	args := []string{"leave"}
	if c.t != nil && c.t.Failed() {
		args = append(args, "--timeout", "30s") // short, because the masters might be lost
	}
	result, err := c.slipway(args...)
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("slipway leave: exit code %d\n%s%s", result.Code, result.Stdout, result.Stderr)
	}
	if err != nil {
		return []error{err}
	}
	return nil
}

func (c *Cluster) newHost(name string, options Options) (*Host, error) {
	if c.segment == nil {
		return nil, errors.New("a cluster with further hosts needs Options.Segment")
	}
	node, err := merge(fmt.Sprintf("nodeName: %s", name), options.Node)
	if err != nil {
		return nil, fmt.Errorf("merge configuration: %w", err)
	}
	options.Node = string(node)
	where := c.segment
	if options.Segment {
		where = nil
	}
	host, err := prepareIn(options, where)
	if err != nil {
		return nil, err
	}
	host.Config, host.Client, host.Namespace, host.master = c.Config, c.Client, c.Namespace, c
	return host, nil
}

// JoinWith runs `slipway up --join` and fails the test unless the host joins.
func (c *Cluster) JoinWith(url, token string) {
	c.t.Helper()
	if err := c.join(url, token); err != nil {
		c.t.Fatal(err)
	}
}

// Token creates a join token for a single host.
func (c *Cluster) Token() string {
	c.t.Helper()
	return strings.TrimSpace(c.MustSlipway("token", "create"))
}

// MasterToken creates a join token for a single master.
func (c *Cluster) MasterToken() string {
	c.t.Helper()
	return strings.TrimSpace(c.MustSlipway("token", "create", "--role", "master"))
}

// APIURL returns the API server's address on the cluster's network segment.
func (c *Cluster) APIURL() string {
	return (&url.URL{Scheme: "https", Host: net.JoinHostPort(c.Address.String(), "8443")}).String()
}

// sharedHost is an additional host of the shared cluster. The first test that needs the host starts
// it.
type sharedHost struct {
	once sync.Once
	host *Host
	err  error
}

// SharedHost returns the shared cluster and its second host, whose node is named "second". All
// tests in a package share the cluster and the host.
func SharedHost(t testing.TB) (cluster *Cluster, host *Host) {
	t.Helper()
	cluster = Shared(t)
	return cluster, cluster.shareHost(&shared.second, "second", false)
}

// SharedDistantHost returns an additional host of the shared cluster. The host is on a different
// network segment, and its node is named "distant".
func (c *Cluster) SharedDistantHost() *Host {
	c.t.Helper()
	return c.shareHost(&shared.distant, "distant", true)
}

func (c *Cluster) shareHost(s *sharedHost, name string, segment bool) *Host {
	c.t.Helper()
	s.once.Do(func() { s.host, s.err = c.joinShared(name, segment) })
	if s.err != nil {
		c.t.Fatalf("join shared host: %v", s.err)
	}
	clone := *s.host
	clone.t, clone.Namespace = c.t, c.Namespace
	c.t.Cleanup(func() {
		if clone.t.Failed() {
			clone.diagnose(clone.t)
		}
	})
	return &clone
}

func (c *Cluster) joinShared(name string, segment bool) (*Host, error) {
	options := shared.options
	options.Segment = segment
	host, err := c.newHost(name, options)
	if err != nil {
		return nil, err
	}
	token, err := c.slipway("token", "create")
	if err != nil {
		return host, err
	}
	return host, host.join(c.APIURL(), strings.TrimSpace(token.Stdout))
}

// join runs `slipway up --join`, passing the token on standard input.
func (c *Cluster) join(url, token string) error {
	c.runs = true
	args := []string{"up", "--join", url, "--token-file", "-"}
	if c.router && !c.joined() {
		args = append(args, "--router")
	}
	result, err := c.run(token+"\n", c.program("slipway"), args...)
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("slipway up --join: exit code %d\n%s%s", result.Code, result.Stdout, result.Stderr)
	}
	return err
}
