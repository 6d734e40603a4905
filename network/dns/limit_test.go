package dns

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// silentResolver never responds. It records the names in the queries that it receives.
func silentResolver(t *testing.T) (address string, asked *sync.Map) {
	t.Helper()
	packets, listener := listenBoth(t, "127.0.0.1:0")
	asked = &sync.Map{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for buffer := make([]byte, dns.MinMsgSize); ; {
			size, _, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			var question dns.Msg
			if question.Unpack(buffer[:size]) == nil && len(question.Question) == 1 {
				asked.Store(question.Question[0].Name, true)
			}
		}
	}()
	t.Cleanup(func() { packets.Close(); listener.Close(); <-done })
	return packets.LocalAddr().String(), asked
}

func TestServerRejectsFurtherQueriesOfBusyClient(t *testing.T) {
	api, config := newAPI(t)
	shop(api)
	silent, asked := silentResolver(t)
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, Upstreams: []string{silent}, clientQueries: 1}
	componenttest.Run(t, server.Run)
	number := 0
	next := func() *dns.Msg {
		number++
		return new(dns.Msg).SetQuestion(fmt.Sprintf("n%d.example.com.", number), dns.TypeA)
	}
	isForwarded := func(question *dns.Msg) bool {
		_, forwarded := asked.Load(question.Question[0].Name)
		return forwarded
	}
	client := dns.Client{Net: "udp", Timeout: 20 * time.Second}
	eventually.True(t, "the server to have a resolver", func() bool {
		question := next()
		_, _, _ = client.Exchange(question, server.Address) // fails, because the resolver never responds
		return isForwarded(question)
	})
	eventually.True(t, "a query that the server rejects without a resolver", func() bool {
		first, err := net.Dial("udp4", server.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		waiting := next()
		packet, err := waiting.Pack()
		if err == nil {
			_, err = first.Write(packet)
		}
		if err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "a query that waits for the resolver", func() bool { return isForwarded(waiting) })
		second := next()
		response, _, err := client.Exchange(second, server.Address)
		return err == nil && response.Rcode == dns.RcodeServerFailure && !isForwarded(second)
	})
	if got := query(t, "udp", server.Address, "A", "web.shop.svc.cluster.local."); got != "NOERROR 172.30.0.10" {
		t.Errorf("a name of the cluster has the response %q", got)
	}
}

// writer is a response writer for a client with the given address.
type writer struct {
	dns.ResponseWriter
	address string
}

func (w writer) RemoteAddr() net.Addr {
	return &net.UDPAddr{IP: net.ParseIP(w.address), Port: 1}
}

func TestQueriesInProgressAreLimited(t *testing.T) {
	entered, finish := make(chan struct{}), make(chan struct{})
	l := newLimiter(blocker{entered, finish}, maxClientQueries)
	query := new(dns.Msg).SetQuestion("example.com.", dns.TypeA)
	var queries sync.WaitGroup
	send := func(address string) {
		queries.Go(func() { _, _ = l.ServeDNS(t.Context(), writer{address: address}, query) })
		<-entered
	}
	rejected := func(address string) bool {
		code, err := l.ServeDNS(t.Context(), writer{address: address}, query)
		return code == dns.RcodeServerFailure && err == errBusy
	}
	for range maxClientQueries {
		send("10.128.0.5")
	}
	if !rejected("10.128.0.5") {
		t.Error("a client has more queries in progress than the limit")
	}
	for i := range maxQueries - maxClientQueries {
		send(fmt.Sprintf("10.128.1.%d", i/maxClientQueries))
	}
	for i := range maxQueries / (maxQueries/maxClientQueries + 1) {
		if i%100 == 0 && !rejected("10.128.1.0") {
			t.Error("a client has more queries in progress than its share")
		}
		send("10.128.0.6")
	}
	if !rejected("10.128.0.6") {
		t.Error("all clients have more queries in progress than the limit")
	}
	close(finish)
	queries.Wait()
	if clients, total := l.queries.InUse(); clients > 0 || total != 0 {
		t.Errorf("after their end, queries count: %d clients, %d", clients, total)
	}
}

// blocker is a handler that blocks queries.
type blocker struct{ entered, finish chan struct{} }

func (blocker) Name() string { return "block" }

func (b blocker) ServeDNS(_ context.Context, _ dns.ResponseWriter, _ *dns.Msg) (int, error) {
	b.entered <- struct{}{}
	<-b.finish
	return dns.RcodeSuccess, nil
}
