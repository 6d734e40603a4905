package membership

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-platform/slipway/network/hostaddr"
)

// etcdTimeout is the timeout for connecting to a port of etcd on another master.
const etcdTimeout = 5 * time.Second

// openPorts is the remedy if a master cannot connect to etcd's ports on another master.
const openPorts = "allow connections between masters, in both directions, to the ports of etcd (2379 and 2380, or those of etcdConfig), and run the command again"

// checkEtcd returns an error if this host cannot connect to the etcd member of the master that
// admitted it. It does not check the other members, because they might be lost. If no member has
// the address of that master's API server, this host must be able to connect to any member. cluster
// lists the members as NAME=URL, and apis contains the host:port of the master's API server. client
// is the host:port at which the masters' etcd serves clients.
func (h *Host) checkEtcd(ctx context.Context, cluster string, apis []string, client string) error {
	own := h.Config.Node.NodeName
	var members, others []etcdMember
	for entry := range strings.SplitSeq(cluster, ",") {
		name, peer, _ := strings.Cut(entry, "=")
		target, err := url.Parse(peer)
		if err != nil {
			return fmt.Errorf("read address of etcd member %s: %w", name, err)
		}
		member := etcdMember{name, []string{target.Host}}
		if ip, err := netip.ParseAddr(target.Hostname()); err == nil {
			member.addresses = append(member.addresses, hostaddr.Reachable(client, ip))
		}
		switch {
		case name == own:
		case slices.ContainsFunc(apis, func(api string) bool {
			host, _, err := net.SplitHostPort(api)
			return err == nil && host == target.Hostname()
		}):
			members = append(members, member)
		default:
			others = append(others, member)
		}
	}
	if len(members) == 0 {
		members = others
	}
	var errs []error
	for _, member := range members {
		err := member.connect(ctx)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("the etcd member of master %s does not respond: %w", member.name, err))
	}
	return fmt.Errorf("%w; %s", errors.Join(errs...), openPorts)
}

// etcdMember is a member of etcd. addresses contains the host:port addresses at which it serves
// peers and clients.
type etcdMember struct {
	name      string
	addresses []string
}

// connect returns an error if this machine cannot connect to all addresses of the member.
func (m etcdMember) connect(ctx context.Context) error {
	for _, address := range m.addresses {
		if err := dial(ctx, address); err != nil {
			return err
		}
	}
	return nil
}

// dial returns an error if this machine cannot connect to a host:port address.
func dial(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{Timeout: etcdTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	conn.Close()
	return nil
}

// checkFirewall returns an error if a firewall prevents connections from this machine to ports of a
// new master. etcd does not run there yet, so a refused connection usually means that the port is
// open. A firewall can also refuse connections, but most firewalls drop or prohibit them.
func checkFirewall(ctx context.Context, address string, ports ...string) error {
	for _, port := range ports {
		if err := dial(ctx, net.JoinHostPort(address, port)); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
	}
	return nil
}
