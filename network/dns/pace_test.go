package dns

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestQueriesInConnectionAreDelayed(t *testing.T) {
	api, config := newAPI(t)
	shop(api)
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, ClusterOnly: true}
	componenttest.Run(t, server.Run)
	packet, err := new(dns.Msg).SetQuestion("web.shop.svc.cluster.local.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", server.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	start := time.Now()
	framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...)
	// Writing fails when the connection is closed.
	go func() { _, _ = conn.Write(slices.Repeat(framed, 10*workBurst)) }()
	var responses atomic.Int64
	header := make([]byte, 2)
	for time.Since(start) < 2*time.Second {
		if err := conn.SetReadDeadline(start.Add(2 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, header); err != nil {
			break
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint16(header))); err != nil {
			break
		}
		responses.Add(1)
	}
	most := int64(workBurst + workRate*(time.Since(start).Seconds()+1))
	if got := responses.Load(); got < workBurst || got > most {
		t.Errorf("the server responds to %d queries, want at least %d and at most %d", got, workBurst, most)
	}
}

func TestWorkDependsOnEndpoints(t *testing.T) {
	api, config := newAPI(t)
	shop(api)
	api.add(servicesPath, service("heavy", corev1.ClusterIPNone, port("http", 80)))
	api.add(servicesPath, service("balanced", "172.30.0.20", port("http", 80)))
	var endpoints []discoveryv1.Endpoint
	for i := range 1000 {
		endpoints = append(endpoints, endpoint(fmt.Sprintf("10.128.%d.%d", i/250, 1+i%250), "", true))
	}
	for _, name := range []string{"heavy", "balanced"} {
		api.add(slicesPath, slice(name, 80, endpoints...))
	}
	zone, err := newCluster(config, "cluster.local")
	if err != nil {
		t.Fatal(err)
	}
	go zone.APIConn.Run()
	t.Cleanup(func() { _ = zone.APIConn.Stop() })
	eventually.True(t, "the services of the cluster", zone.Ready)
	p := newPacer(zone, nil)
	for name, want := range map[string]int{
		"heavy.shop.svc.cluster.local.": 101, "heavy.shop.cluster.local.": 101, "x.heavy.shop.svc.cluster.local.": 101, "heavy.shop.endpoints.cluster.local.": 101,
		"_endpoints.balanced.shop.svc.cluster.local.": 101, "balanced.shop.svc.cluster.local.": 1, "db.shop.svc.cluster.local.": 1,
		"shop.svc.cluster.local.": 1, "svc.cluster.local.": 1, "cluster.local.": 1, "www.example.com.": 1, "none.shop.svc.cluster.local.": 1,
	} {
		if got := p.work(name); got != want {
			t.Errorf("work for %s is %d, want %d", name, got, want)
		}
	}
	served := 0
	p.next = plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
		served++
		return dns.RcodeSuccess, nil
	})
	start, question := time.Now(), new(dns.Msg).SetQuestion("heavy.shop.svc.cluster.local.", dns.TypeA)
	for range 2 * workBurst / 101 {
		if _, err := p.ServeDNS(t.Context(), writer{address: "10.128.0.5"}, question); err != nil {
			t.Fatal(err)
		}
	}
	if most := (workBurst+int(workRate*time.Since(start).Seconds()))/101 + 1; served < workBurst/101 || served > most {
		t.Errorf("%d queries of a client are served, want %d to %d", served, workBurst/101, most)
	}
	before := served
	if _, err := p.ServeDNS(t.Context(), writer{address: "10.128.0.6"}, question); err != nil || served == before {
		t.Errorf("another client is not served: %v", err)
	}
}
