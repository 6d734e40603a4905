package pod

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/miekg/dns"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/netnamespace"
	"github.com/slipway-platform/slipway/test/kit"
)

// nameservers makes the cluster forward queries for external names to newOutside's DNS server.
const nameservers = "dnsNameservers: [198.51.100.2]"

// outside is a machine outside the cluster that is connected to the cluster's machine. It has the
// addresses in outsideAddresses, a web server on port 8080, a server on port 9000 that counts
// bytes, and DNS servers. The web server responds with the address to which the request was sent.
type outside struct {
	*netnamespace.Namespace
	// bytes is the number of bytes that the server on port 9000 has received.
	bytes atomic.Int64

	mutex sync.Mutex
	zone  map[string]string // records of the DNS server, keyed by name
	asked map[string]bool   // names for which the DNS server has received queries
}

// wrongDNS is the address of a DNS server that returns 203.0.113.9 for every name.
const wrongDNS = "1.2.3.53"

var outsideAddresses = []string{wrongDNS, "1.2.3.4", "10.11.12.13", "20.21.22.23", "203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4", "203.0.113.5", "203.0.113.9"}

func newOutside(t *testing.T, c *kit.Cluster) *outside {
	t.Helper()
	namespace, err := netnamespace.New()
	if err != nil {
		t.Fatal(err)
	}
	o := &outside{Namespace: namespace, zone: map[string]string{}, asked: map[string]bool{}}
	t.Cleanup(func() {
		if err := errors.Join(c.Do(disconnect), namespace.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(c.Do(func() error { return connect(namespace.FD()) }), namespace.Do(addAddresses), c.Do(addRoutes)); err != nil {
		t.Fatal(err)
	}
	o.serve(t)
	return o
}

const outsideDevice = "outside"

// connect creates a veth pair between the cluster's machine and the namespace.
func connect(namespace int) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = outsideDevice
	cable := &netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsFd(namespace)}
	if err := netlink.LinkAdd(cable); err != nil {
		return fmt.Errorf("add device: %w", err)
	}
	return netnamespace.SetUp(outsideDevice, netip.MustParsePrefix("198.51.100.1/30"))
}

func disconnect() error {
	link, err := netlinksafe.LinkByName(outsideDevice)
	if err != nil {
		return err
	}
	return netlink.LinkDel(link)
}

func addAddresses() error {
	errs := []error{netnamespace.SetUp("lo", netip.Prefix{}), netnamespace.SetUp("eth0", netip.MustParsePrefix("198.51.100.2/30"))}
	for _, address := range outsideAddresses {
		errs = append(errs, netnamespace.SetUp("eth0", netip.PrefixFrom(netip.MustParseAddr(address), 32)))
	}
	return errors.Join(errs...)
}

func addRoutes() error {
	var errs []error
	for _, address := range outsideAddresses {
		destination := &net.IPNet{IP: net.ParseIP(address).To4(), Mask: net.CIDRMask(32, 32)}
		errs = append(errs, netlink.RouteAdd(&netlink.Route{Dst: destination, Gw: net.IPv4(198, 51, 100, 2)}))
	}
	return errors.Join(errs...)
}

// serve starts the servers.
func (o *outside) serve(t *testing.T) {
	t.Helper()
	web, err := o.Listen("tcp4", ":8080")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local := r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
		fmt.Fprintf(w, "I am %s\n", strings.TrimSuffix(local, ":8080"))
	})}
	counter, err := o.Listen("tcp4", ":9000")
	if err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() { _ = server.Serve(web) })
	ctx, cancel := context.WithCancel(context.Background())
	tasks.Go(func() { o.count(ctx, counter) })
	t.Cleanup(func() {
		cancel()
		server.Close()
		counter.Close()
		tasks.Wait()
	})
	o.serveDNS(t, "198.51.100.2:53", o.lookUp)
	o.serveDNS(t, wrongDNS+":53", func(string) []string { return []string{"A 203.0.113.9"} })
}

// count counts the bytes of one connection after another. It closes the current connection when ctx
// is done, because a firewall might prevent the client from closing it.
func (o *outside) count(ctx context.Context, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		buffer := make([]byte, 4096)
		for err == nil {
			var size int
			size, err = conn.Read(buffer)
			o.bytes.Add(int64(size))
		}
		stop()
		conn.Close()
	}
}

// set sets the records for a name. records are separated by semicolons, such as "A 192.0.2.1". A
// record can begin with a different owner name.
func (o *outside) set(name, records string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.zone[name] = records
}

// received reports whether the DNS server has received a query for a name.
func (o *outside) received(name string) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.asked[name]
}

func (o *outside) lookUp(name string) (records []string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.asked[name] = true
	if o.zone[name] == "" {
		return nil
	}
	return strings.Split(o.zone[name], ";")
}

// serveDNS runs a UDP DNS server for IPv4 address records with a TTL of zero.
func (o *outside) serveDNS(t *testing.T, address string, lookUp func(name string) []string) {
	t.Helper()
	var packets net.PacketConn
	err := o.Do(func() (err error) {
		packets, err = net.ListenPacket("udp4", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	server := &dns.Server{PacketConn: packets, NotifyStartedFunc: func() { close(started) }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		response := new(dns.Msg).SetReply(query)
		for _, text := range lookUp(query.Question[0].Name) {
			fields := strings.Fields(text)
			if len(fields) == 2 {
				fields = append([]string{query.Question[0].Name}, fields...)
			}
			record, err := dns.NewRR(fmt.Sprintf("%s 0 IN %s %s", fields[0], fields[1], fields[2]))
			if err == nil && (query.Question[0].Qtype == record.Header().Rrtype || fields[1] == "CNAME") {
				response.Answer = append(response.Answer, record)
			}
		}
		_ = w.WriteMsg(response) // if this fails, the client repeats its query
	})}
	var tasks sync.WaitGroup
	tasks.Go(func() { _ = server.ActivateAndServe() })
	<-started
	t.Cleanup(func() {
		_ = server.Shutdown()
		tasks.Wait()
	})
}
