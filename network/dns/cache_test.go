package dns

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// right is the response that clients must get.
const right = "NOERROR 198.51.100.9"

// strictResolver responds like a resolver on the internet: to a query without the flag for
// recursion with a referral, and to a query with a client subnet with the address of a server near
// this subnet.
func strictResolver(q *dns.Msg) *dns.Msg {
	m, address := new(dns.Msg).SetReply(q), "198.51.100.9"
	if options := q.IsEdns0(); options != nil && len(options.Option) > 0 {
		address = "203.0.113.66"
	}
	answer, err := dns.NewRR(q.Question[0].Name + " 600 IN A " + address)
	referral, err2 := dns.NewRR("com. 86400 IN NS a.gtld-servers.net.")
	if errors.Join(err, err2) != nil {
		return nil
	}
	if q.RecursionDesired {
		m.Answer = append(m.Answer, answer)
	} else {
		m.Ns = append(m.Ns, referral)
	}
	return m
}

func TestClientCannotChangeCachedResponses(t *testing.T) {
	_, config := newAPI(t)
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, Upstreams: []string{resolver(t, strictResolver)}}
	componenttest.Run(t, server.Run)
	waitForResponse(t, server.Address, "ready.example.com.", right)
	for name, change := range map[string]func(*dns.Msg){
		"referral.example.com.": func(m *dns.Msg) { m.RecursionDesired = false },
		"subnet.example.com.": func(m *dns.Msg) {
			m.SetEdns0(1232, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, Address: net.IPv4(203, 0, 113, 0)}}
		},
	} {
		question := new(dns.Msg).SetQuestion(name, dns.TypeA)
		change(question)
		if _, _, err := (&dns.Client{Timeout: 5 * time.Second}).Exchange(question, server.Address); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := query(t, "udp", server.Address, "A", name); got != right {
			t.Errorf("after the query of another client, the response for %s is %s", name, got)
		}
	}
}

// TestFailuresAreNotCached queries a resolver that ignores a name over TCP, as a firewall can.
func TestFailuresAreNotCached(t *testing.T) {
	_, config := newAPI(t)
	packets, listener := listenBoth(t, "127.0.0.1:0")
	listener.Close()
	upstream := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) { _ = w.WriteMsg(strictResolver(q)) })}
	started := make(chan struct{})
	upstream.NotifyStartedFunc = func() { close(started) }
	go func() { _ = upstream.ActivateAndServe() }()
	<-started
	t.Cleanup(func() { _ = upstream.Shutdown() })
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, Upstreams: []string{packets.LocalAddr().String()}}
	componenttest.Run(t, server.Run)
	waitForResponse(t, server.Address, "ready.example.com.", right)
	if got := query(t, "tcp", server.Address, "A", "once.example.com."); got != "SERVFAIL" {
		t.Errorf("over TCP, the response is %s", got)
	}
	if got := query(t, "udp", server.Address, "A", "once.example.com."); got != right {
		t.Errorf("after a failure over TCP, the response over UDP is %s", got)
	}
}

// TestRejectionsAreNotCached makes a client exceed its limit for a name that another client then
// queries.
func TestRejectionsAreNotCached(t *testing.T) {
	_, config := newAPI(t)
	upstream := resolver(t, func(q *dns.Msg) *dns.Msg {
		if strings.HasPrefix(q.Question[0].Name, "slow") {
			return nil
		}
		return strictResolver(q)
	})
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, Upstreams: []string{upstream}, clientQueries: 1}
	componenttest.Run(t, server.Run)
	waitForResponse(t, server.Address, "ready.example.com.", right)
	number, wanted := 0, ""
	eventually.True(t, "a rejection", func() bool {
		number++
		wanted = fmt.Sprintf("wanted%d.example.com.", number)
		slow, err := net.Dial("udp4", server.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		packet, err := new(dns.Msg).SetQuestion(fmt.Sprintf("slow%d.example.com.", number), dns.TypeA).Pack()
		if err == nil {
			_, err = slow.Write(packet)
		}
		if err != nil {
			t.Fatal(err)
		}
		return query(t, "udp", server.Address, "A", wanted) == "SERVFAIL"
	})
	other := dns.Client{Timeout: 5 * time.Second, Dialer: &net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 9)}}}
	response, _, err := other.Exchange(new(dns.Msg).SetQuestion(wanted, dns.TypeA), server.Address)
	if err != nil || response.Rcode != dns.RcodeSuccess {
		t.Errorf("another client gets the response %v, %v", response, err)
	}
}

func TestLargeResponsesAreNotCached(t *testing.T) {
	_, config := newAPI(t)
	var forwarded atomic.Int64
	upstream := resolver(t, func(q *dns.Msg) *dns.Msg {
		m := strictResolver(q)
		for i := 1; strings.HasPrefix(q.Question[0].Name, "large") && i < 100; i++ {
			m.Answer = append(m.Answer, dns.Copy(m.Answer[0]))
		}
		if !strings.HasPrefix(q.Question[0].Name, "ready") {
			forwarded.Add(1)
		}
		return m
	})
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, Upstreams: []string{upstream}}
	componenttest.Run(t, server.Run)
	waitForResponse(t, server.Address, "ready.example.com.", right)
	for name, want := range map[string]int64{"large.example.com.": 3, "small.example.com.": 1} {
		before := forwarded.Load()
		for range 3 {
			if got := query(t, "tcp", server.Address, "A", name); !strings.HasPrefix(got, right) {
				t.Errorf("%s: %s", name, got)
			}
		}
		if got := forwarded.Load() - before; got != want {
			t.Errorf("%s: %d of 3 queries were forwarded, want %d", name, got, want)
		}
	}
}
