package policy

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"
)

const (
	// defaultTTL is the TTL for responses without a TTL, as in OpenShift 3.11.
	defaultTTL = 30 * time.Second
	// minTTL is the minimum time after which a name is resolved again.
	minTTL = 5 * time.Second
	// resolveBackoff is the delay before a retry after a failure to resolve a name.
	resolveBackoff = 2 * time.Second
	// resolveTimeout is the timeout of one query.
	resolveTimeout = 5 * time.Second
	// maxQueries is the maximum number of concurrent queries.
	maxQueries = 16
)

// refresh resolves each name when it is added, and again when the TTL of its response expires,
// until ctx is done. The node's DNS server calls Observe with the responses. refresh does not
// resolve names below a wildcard, because they are unknown until a pod resolves them.
func (n *Names) refresh(ctx context.Context, resolve func(ctx context.Context, name string) (time.Duration, error)) {
	due := map[string]time.Time{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.changes:
		case <-timer.C:
		}
		due = resolveDue(ctx, n.exact(), due, resolve)
		next := keepPeriod
		for _, at := range due {
			next = min(next, time.Until(at))
		}
		timer.Reset(next)
	}
}

// resolveDue resolves the names that are due. It returns the time at which each name is next due.
func resolveDue(ctx context.Context, names []string, due map[string]time.Time, resolve func(context.Context, string) (time.Duration, error)) map[string]time.Time {
	var group errgroup.Group
	group.SetLimit(maxQueries)
	var mutex sync.Mutex
	next := map[string]time.Time{}
	for _, name := range names {
		if at := due[name]; time.Until(at) > 0 {
			next[name] = at
			continue
		}
		group.Go(func() error {
			ttl, err := resolve(ctx, name)
			if err != nil {
				ttl = resolveBackoff // the DNS server of the name or of the node is not ready
			}
			mutex.Lock()
			defer mutex.Unlock()
			next[name] = time.Now().Add(ttl)
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
	return next
}

// resolver returns a function that queries a DNS server for a name's records. The function returns
// the time after which a response can change.
func resolver(server string, types []uint16) func(ctx context.Context, name string) (time.Duration, error) {
	client := dns.Client{Timeout: resolveTimeout}
	return func(ctx context.Context, name string) (time.Duration, error) {
		next := keepPeriod
		for _, kind := range types {
			ttl, err := resolve(ctx, client, server, name, kind)
			if err != nil {
				return 0, fmt.Errorf("resolve %q: %w", name, err)
			}
			next = min(next, ttl)
		}
		return next, nil
	}
}

// resolve sends a query. It returns the time after which the response can change.
func resolve(ctx context.Context, client dns.Client, server, name string, kind uint16) (time.Duration, error) {
	resp, _, err := client.ExchangeContext(ctx, new(dns.Msg).SetQuestion(dns.Fqdn(name), kind), server)
	if err != nil {
		return 0, err
	}
	if resp.Rcode != dns.RcodeSuccess && resp.Rcode != dns.RcodeNameError {
		return 0, fmt.Errorf("the response code is %s", dns.RcodeToString[resp.Rcode])
	}
	ttl := keepPeriod
	for _, record := range resp.Answer {
		ttl = min(ttl, time.Duration(record.Header().Ttl)*time.Second)
	}
	if len(resp.Answer) == 0 || ttl == 0 {
		return defaultTTL, nil
	}
	return max(ttl, minTTL), nil
}
