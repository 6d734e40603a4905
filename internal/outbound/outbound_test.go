package outbound

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// dialer returns a dialer for a host at 192.0.2.10/24 that is part of a cluster.
func dialer(allowed ...string) *Dialer {
	policy := Policy{Cluster: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("172.30.0.0/16")}}
	for _, network := range allowed {
		policy.AllowedNetworks = append(policy.AllowedNetworks, netip.MustParsePrefix(network))
	}
	d := New(policy)
	d.interfaces = func() ([]net.Addr, error) {
		return []net.Addr{
			&net.IPNet{IP: net.IPv4(192, 0, 2, 10), Mask: net.CIDRMask(24, 32)},
			&net.IPNet{IP: net.ParseIP("2001:db8::10"), Mask: net.CIDRMask(64, 128)},
		}, nil
	}
	return d
}

func TestHostAndClusterAddressesAreRejectedInEverySpelling(t *testing.T) {
	for address, want := range map[string]bool{
		"198.51.100.1": true, "10.0.0.1": true, "192.168.1.1": true, "100.64.0.1": true, "2001:db8:1::1": true, "fd00::1": true,
		"127.0.0.1": false, "127.8.8.8": false, "::1": false, "0.0.0.0": false, "0.1.2.3": false, "::": false,
		"169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, "fd00:ec2::254": false, "100.100.100.200": false,
		"224.0.0.1": false, "255.255.255.255": false, "ff02::1": false, "fec0::1": false,
		"192.0.2.10": false, "192.0.2.1": false, "2001:db8::99": false,
		"10.128.0.1": false, "10.131.255.255": false, "172.30.0.1": false,
		"::ffff:127.0.0.1": false, "::ffff:192.0.2.10": false, "::127.0.0.1": false, "::ffff:198.51.100.1": true,
		"64:ff9b::127.0.0.1": false, "64:ff9b::10.128.0.1": false, "64:ff9b::198.51.100.1": true, "64:ff9b:1::1": false,
		"2002:7f00:1::": false, "2002:a9fe:a9fe::1": false, "2002:c633:6401::1": true,
		"2001:0:c633:6401:0:0:80ff:fffe": false, "2001:db8:1::5efe:127.0.0.1": false, "2001:db8:1::200:5efe:127.0.0.1": false,
	} {
		if got := dialer().Allowed(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is allowed: %t, want %t", address, got, want)
		}
	}
}

func TestHostsOfOtherNetworksAreRejected(t *testing.T) {
	d := dialer("203.0.113.9/32")
	d.policy.Hosts = func() []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("2001:db8:1::7")}
	}
	for address, want := range map[string]bool{
		"198.51.100.8": true, "198.51.100.7": false, "::ffff:198.51.100.7": false, "64:ff9b::198.51.100.7": false, "2001:db8:1::7": false,
		"203.0.113.9": true, // the administrator allows it
	} {
		if got := d.Allowed(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is allowed: %t, want %t", address, got, want)
		}
	}
}

func TestAllowedNetworks(t *testing.T) {
	d := dialer("192.0.2.0/28", "127.0.0.2/32")
	for address, want := range map[string]bool{
		"192.0.2.1": true, "::ffff:192.0.2.1": true, "192.0.2.16": false, "127.0.0.2": true, "127.0.0.1": false,
	} {
		if got := d.Allowed(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is allowed: %t, want %t", address, got, want)
		}
	}
}

func TestUnknownHostAddressesRejectEverything(t *testing.T) {
	d := dialer()
	d.interfaces = func() ([]net.Addr, error) { return nil, errors.New("no netlink") }
	if d.Allowed(netip.MustParseAddr("198.51.100.1")) {
		t.Error("an address is allowed although the host's addresses are unknown")
	}
}

func TestHostsAreAllowedByNameAndPort(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	d := New(Policy{AllowedHosts: []string{"LocalHost:" + port, "only.example.com"}})
	get := func(host string) error {
		response, err := (&http.Client{Transport: d.Transport(false)}).Get("http://" + host + "/")
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	if err := get("localhost:" + port); err != nil {
		t.Errorf("an allowed host: %v", err)
	}
	rejection := &Refused{}
	if err := get("127.0.0.1:" + port); !errors.As(err, &rejection) || rejection.Host != "127.0.0.1:"+port {
		t.Errorf("its address: %v", err)
	}
	for address, want := range map[string]bool{"only.example.com:443": true, "only.example.com:80": true, "only.example.com:22": false} {
		if got := d.isListed(address); got != want {
			t.Errorf("%s is allowed: %t, want %t", address, got, want)
		}
	}
}

func TestRedirectsAreCheckedAndCounted(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the rejected server receives a request") }))
	t.Cleanup(inside.Close)
	hops := 0
	var outside *httptest.Server
	outside = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hops++
		to := inside.URL
		if r.URL.Path == "/around" {
			to = outside.URL + "/around"
		}
		http.Redirect(w, r, to, http.StatusFound)
	}))
	t.Cleanup(outside.Close)
	d := New(Policy{AllowedHosts: []string{strings.TrimPrefix(outside.URL, "http://")}})
	client := &http.Client{Transport: d.Transport(false), CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	rejection := &Refused{}
	if _, err := client.Get(outside.URL + "/"); !errors.As(err, &rejection) {
		t.Errorf("a redirect to a rejected server: %v", err)
	}
	hops = 0
	if _, err := client.Get(outside.URL + "/around"); err == nil || hops != maxRedirects+1 {
		t.Errorf("after %d redirects: %v", hops, err)
	}
}

func TestProxyReceivesNoRequestsForRejectedServers(t *testing.T) {
	var requests []string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { requests = append(requests, r.URL.Host) }))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", "")
	client := &http.Client{Transport: dialer().Transport(false)}
	rejection := &Refused{}
	for _, host := range []string{"192.0.2.10", "[::ffff:a9fe:a9fe]", "10.128.0.1:5000", strings.TrimPrefix(proxy.URL, "http://")} {
		if _, err := client.Get("http://" + host + "/"); !errors.As(err, &rejection) {
			t.Errorf("%s: %v", host, err)
		}
	}
	response, err := client.Do(&http.Request{URL: &url.URL{Scheme: "http", Host: "198.51.100.1"}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if len(requests) != 1 || requests[0] != "198.51.100.1" {
		t.Errorf("the proxy receives a request for %q", requests)
	}
}
