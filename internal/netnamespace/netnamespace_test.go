package netnamespace

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestSocketsBelongToNamespace(t *testing.T) {
	namespaces := make([]*Namespace, 2)
	for i := range namespaces {
		n, err := New()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Close() })
		if err := n.Do(func() error { return SetUp("lo", netip.Prefix{}) }); err != nil {
			t.Fatal(err)
		}
		namespaces[i] = n
	}
	// Use the same address and port for a listener in each namespace. Only one of the listeners
	// accepts the connection.
	for _, n := range namespaces {
		listener, err := n.Listen("tcp", "127.0.0.1:8443")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
	}
	conn, err := namespaces[1].Dial(t.Context(), "tcp", "127.0.0.1:8443")
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestSetUpAddsAddressToDevice(t *testing.T) {
	n, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	err = n.Do(func() error {
		if err := SetUp("lo", netip.MustParsePrefix("192.0.2.1/30")); err != nil {
			return err
		}
		routes, err := netlink.RouteGet([]byte{192, 0, 2, 1})
		if err == nil && len(routes) != 1 {
			t.Errorf("routes to the address of lo: %v, want one", routes)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := n.Do(func() error { return SetUp("eth0", netip.Prefix{}) }); err == nil {
		t.Error("a missing device is set up")
	}
}
