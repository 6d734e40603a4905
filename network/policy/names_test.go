package policy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// namesOf returns a Names with the given names. The Names uses *now as the current time.
func namesOf(t *testing.T, names ...string) (n *Names, now *time.Time) {
	t.Helper()
	n, now = NewNames(), new(time.Time)
	*now = time.Now()
	n.now = func() time.Time { return *now }
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	n.set(set)
	return n, now
}

// sync enforces the names' addresses, as an Enforcer does.
func (n *Names) sync() { n.confirm(n.addresses()) }

func TestNamesMatchQueries(t *testing.T) {
	n, _ := namesOf(t, "www.foo.com", "*.bar.org", "*.a.bar.org", "*.com")
	for query, want := range map[string][]string{
		"www.foo.com.":          {"*.com", "www.foo.com"},
		"WWW.Foo.COM.":          {"*.com", "www.foo.com"},
		"foo.net.":              nil,
		"bar.org.":              nil,
		"x.bar.org.":            {"*.bar.org"},
		"x.y.bar.org.":          {"*.bar.org"},
		"x.a.bar.org.":          {"*.a.bar.org", "*.bar.org"},
		"xbar.org.":             nil,
		"bar.org.evil.net.":     nil,
		"www.foo.com.evil.net.": nil,
		`evil\.bar.org.`:        nil, // the label "evil.bar" of the domain org
		`x\.y.bar.org.`:         {"*.bar.org"},
		`www\.foo.com.`:         {"*.com"},
		`*.bar.org.`:            {"*.bar.org"},
		".":                     nil,
		`bar.org\..`:            nil,
	} {
		got := n.match(query)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
}

func TestAddressesOfANameExpire(t *testing.T) {
	n, now := namesOf(t, "www.foo.com")
	first, second := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	check := func(when string, want ...netip.Addr) {
		t.Helper()
		got := n.addresses()["www.foo.com"]
		slices.SortFunc(got, netip.Addr.Compare)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	n.record("www.foo.com.", []netip.Addr{first}, time.Minute)
	*now = now.Add(29 * time.Minute)
	n.record("www.foo.com.", []netip.Addr{second}, 2*time.Hour)
	check("after the change", first, second)
	*now = now.Add(2 * time.Minute)
	check("30 minutes after its last response", second)
	*now = now.Add(100 * time.Minute)
	check("within the TTL", second)
	*now = now.Add(time.Hour)
	check("after the TTL")
}

func TestEveryResponseWaitsUntilItsAddressesAreEnforced(t *testing.T) {
	n, _ := namesOf(t, "www.foo.com")
	address := []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	results := make(chan error, 2)
	for range 2 { // the address of the second response is not new, but the kernel does not have it yet
		go func() { results <- n.Observe(t.Context(), "www.foo.com.", address, 0) }()
	}
	requests := []chan<- error{<-n.requests, <-n.requests}
	select {
	case err := <-results:
		t.Fatalf("a response left before the rules: %v", err)
	default:
	}
	n.sync()
	for _, request := range requests {
		request <- nil
	}
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	// The kernel already has the address.
	if err := n.Observe(t.Context(), "www.foo.com.", address, 0); err != nil {
		t.Error(err)
	}
	// No firewall contains the name.
	if err := n.Observe(t.Context(), "www.other.com.", address, 0); err != nil {
		t.Error(err)
	}
}

func TestResponseFailsWithoutItsRules(t *testing.T) {
	n, _ := namesOf(t, "www.foo.com")
	address := []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	failure := errors.New("nft is missing")
	go func() { (<-n.requests) <- failure }()
	if err := n.Observe(t.Context(), "www.foo.com.", address, 0); !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Observe(ctx, "www.foo.com.", address, 0); !errors.Is(err, errStopped) {
		t.Errorf("without an Enforcer: got %v, want %v", err, errStopped)
	}
}

func TestNameHasALimitOfAddresses(t *testing.T) {
	n, now := namesOf(t, "*.foo.com")
	address := netip.MustParseAddr("192.0.2.1")
	oldest := address
	for i := range maxAddresses + 1 {
		*now = now.Add(time.Millisecond)
		n.record(fmt.Sprintf("x%d.foo.com.", i), []netip.Addr{address}, 0)
		address = address.Next()
	}
	got := n.addresses()["*.foo.com"]
	if len(got) != maxAddresses || slices.Contains(got, oldest) {
		t.Errorf("%d addresses, the oldest among them: %t; want %d without it", len(got), slices.Contains(got, oldest), maxAddresses)
	}
}

func TestRemainingNamesKeepTheirAddresses(t *testing.T) {
	n, _ := namesOf(t, "www.foo.com", "www.bar.org")
	address := netip.MustParseAddr("192.0.2.1")
	n.record("www.foo.com.", []netip.Addr{address}, 0)
	n.record("www.bar.org.", []netip.Addr{address}, 0)
	n.set(map[string]bool{"www.foo.com": true})
	n.set(map[string]bool{"www.foo.com": true, "www.bar.org": true})
	if got := n.addresses(); len(got["www.foo.com"]) != 1 || len(got["www.bar.org"]) != 0 {
		t.Errorf("addresses: %v", got)
	}
	n.restore("www.bar.org", []netip.Addr{address})
	if got := n.addresses(); len(got["www.bar.org"]) != 1 {
		t.Errorf("addresses after restore: %v", got)
	}
}

func TestNamesAreResolvedWhenNewAndAfterTheirTTL(t *testing.T) {
	n, _ := namesOf(t, "www.foo.com", "*.bar.org")
	queries := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.refresh(ctx, func(_ context.Context, name string) (time.Duration, error) {
			queries <- name
			if name == "short.foo.com" {
				return time.Millisecond, nil
			}
			return time.Hour, nil
		})
	}()
	defer func() { cancel(); <-done }()
	if name := <-queries; name != "www.foo.com" {
		t.Errorf("first query: %s", name)
	}
	n.set(map[string]bool{"www.foo.com": true, "short.foo.com": true})
	for range 3 {
		if name := <-queries; name != "short.foo.com" {
			t.Errorf("query of the new name: %s", name)
		}
	}
	n.set(map[string]bool{"www.foo.com": true, "last.foo.com": true})
	eventually.True(t, "query of the last name", func() bool { return <-queries == "last.foo.com" })
}
