package nat

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// TestQueriesOfPodAreLimited sends many datagrams to the DNS server. The loopback device takes the
// place of the bridge.
func TestQueriesOfPodAreLimited(t *testing.T) {
	const address, number = "169.254.20.10", 50_000
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	loopback, err := netlink.LinkByName("lo")
	must(err)
	prefix, err := netlink.ParseAddr(address + "/32")
	must(err)
	must(netlink.AddrAdd(loopback, prefix))
	must(Ensure(t.Context(), Network{
		Table: "test-nat", Bridge: "lo", Pods: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}, DNSAddress: netip.MustParseAddr(address),
	}))
	server, err := net.ListenPacket("udp4", address+":53")
	must(err)
	received := make(chan int)
	go func() {
		count := 0
		for buffer := make([]byte, 64); ; count++ {
			if _, _, err := server.ReadFrom(buffer); err != nil {
				received <- count
				return
			}
		}
	}()
	client, err := net.Dial("udp4", address+":53")
	must(err)
	defer client.Close()
	start := time.Now()
	for range number {
		_, _ = client.Write([]byte("query")) // a dropped datagram causes an error
	}
	most := maxQueryBurst + int(time.Since(start).Seconds()+1)*maxQueryRate
	server.Close()
	if count := <-received; count == 0 || count > most {
		t.Errorf("%d of %d datagrams arrived, want at most %d", count, number, most)
	}
}
