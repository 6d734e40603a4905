package policy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

const (
	// keepPeriod is the minimum time for which a name keeps an address after the last DNS response
	// that contains the address. Keeping the address protects open connections. Source: OpenShift
	// 3.11 Cluster Administration, 7.3.3.1.
	keepPeriod = 30 * time.Minute
	// maxAddresses is the maximum number of addresses per name. If a name exceeds it, the address
	// whose last response is the oldest is removed.
	maxAddresses = 4096
	// observeTimeout is the maximum time for which a DNS response waits for the kernel.
	observeTimeout = 5 * time.Second
)

// Names contains the addresses of the DNS names in egress firewalls. A name is either exact, such
// as "www.example.com", or a wildcard such as "*.example.com" for all names below a domain. An
// Enforcer and its node's DNS server share one Names. The addresses expire in Names, not in the
// kernel. Therefore, a rule that denies a name remains in effect while the node process is down.
type Names struct {
	// IPv6 indicates whether IPv6 addresses are recorded too. Set it before the first use.
	IPv6 bool

	now      func() time.Time
	requests chan chan<- error // requests to the Enforcer to write the sets
	changes  chan struct{}     // receives a value after the names change

	mutex sync.Mutex
	names map[string]map[netip.Addr]*nameAddress
}

// nameAddress is an address of a name.
type nameAddress struct {
	expiry time.Time
	// inKernel indicates whether the kernel's rules contain the address.
	inKernel bool
}

// NewNames returns an empty Names.
func NewNames() *Names {
	return &Names{
		now: time.Now, requests: make(chan chan<- error), changes: make(chan struct{}, 1),
		names: map[string]map[netip.Addr]*nameAddress{},
	}
}

// Observe records the addresses in a DNS response before a client receives the response. It returns
// when the kernel's rules contain the addresses, so that the rules already apply when the client
// connects. It returns immediately for names that no firewall contains.
func (n *Names) Observe(ctx context.Context, name string, addresses []netip.Addr, ttl time.Duration) error {
	if !n.record(name, addresses, ttl) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	done := make(chan error, 1)
	select {
	case n.requests <- done:
	case <-ctx.Done():
		return fmt.Errorf("enforce addresses of %q: %w", name, errors.Join(errStopped, ctx.Err()))
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("enforce addresses of %q: %w", name, errors.Join(errStopped, ctx.Err()))
	}
}

// record records the addresses in a response. It reports whether any of them is missing from the
// kernel's rules.
func (n *Names) record(name string, addresses []netip.Addr, ttl time.Duration) (incomplete bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	expiry := n.now().Add(max(ttl, keepPeriod))
	for _, name := range n.match(name) {
		entries := n.names[name]
		for _, address := range addresses {
			if address.Is6() && !n.IPv6 {
				continue // IPv6 addresses are not enforced
			}
			if entries[address] == nil {
				evictOldest(entries)
				entries[address] = &nameAddress{}
			}
			entries[address].expiry = expiry
			incomplete = incomplete || !entries[address].inKernel
		}
	}
	return incomplete
}

func evictOldest(entries map[netip.Addr]*nameAddress) {
	if len(entries) < maxAddresses {
		return
	}
	var oldest netip.Addr
	for address, a := range entries {
		if !oldest.IsValid() || a.expiry.Before(entries[oldest].expiry) {
			oldest = address
		}
	}
	delete(entries, oldest)
}

// match returns the firewall names that match the name in a DNS query.
func (n *Names) match(query string) (names []string) {
	return matches(query, func(name string) bool { return n.names[name] != nil })
}

// matches returns the names and wildcards that exist and that match the name in a DNS query, the
// longest first. It compares labels instead of strings, because a label can contain a dot.
func matches(query string, exists func(name string) bool) (names []string) {
	query = dns.CanonicalName(query)
	if name := canonicalName(query); exists(name) && !isWildcard(name) {
		names = append(names, name)
	}
	for start, end := dns.NextLabel(query, 0); !end; start, end = dns.NextLabel(query, start) {
		if wildcard := "*." + canonicalName(query[start:]); exists(wildcard) {
			names = append(names, wildcard)
		}
	}
	return names
}

func isWildcard(name string) bool { return strings.HasPrefix(name, "*.") }

// set replaces the names. Names that are still present keep their addresses.
func (n *Names) set(names map[string]bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for name := range n.names {
		if !names[name] {
			delete(n.names, name)
		}
	}
	changed := false
	for name := range names {
		if n.names[name] == nil {
			n.names[name] = map[netip.Addr]*nameAddress{}
			changed = true
		}
	}
	if changed {
		select {
		case n.changes <- struct{}{}:
		default: // a value is already pending
		}
	}
}

// restore adds addresses that a previous process has added to the kernel's rules.
func (n *Names) restore(name string, addresses []netip.Addr) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, address := range addresses {
		if n.names[name] != nil && n.names[name][address] == nil {
			n.names[name][address] = &nameAddress{expiry: n.now().Add(keepPeriod)}
		}
	}
}

// recordTypes returns the types of the DNS address records to query.
func (n *Names) recordTypes() []uint16 {
	if n.IPv6 {
		return []uint16{dns.TypeA, dns.TypeAAAA}
	}
	return []uint16{dns.TypeA}
}

// exact returns the names that are not wildcards.
func (n *Names) exact() (names []string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for name := range n.names {
		if !isWildcard(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// addresses returns the addresses of all names. It removes expired addresses.
func (n *Names) addresses() map[string][]netip.Addr {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	result, now := map[string][]netip.Addr{}, n.now()
	for name, entries := range n.names {
		result[name] = nil
		for address, a := range entries {
			if a.expiry.Before(now) {
				delete(entries, address)
				continue
			}
			result[name] = append(result[name], address)
		}
	}
	return result
}

// confirm records that the kernel's rules contain the given addresses.
func (n *Names) confirm(names map[string][]netip.Addr) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for name, addresses := range names {
		for _, address := range addresses {
			if a := n.names[name][address]; a != nil {
				a.inKernel = true
			}
		}
	}
}
