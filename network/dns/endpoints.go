package dns

import (
	"context"
	"errors"
	"strings"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
)

// endpoints serves OpenShift 3's names for what is behind a service, whether it has a selector, an address, or neither:
//
//	<name>.<namespace>.endpoints.<domain>                     A, AAAA: the ready endpoints; SRV: with their ports
//	_<port>._<protocol>.<name>.<namespace>.endpoints.<domain> the endpoints with that port
//	<host>.<name>.<namespace>.endpoints.<domain>              one endpoint, by its host name or its address with dashes
//
// It is a backend of CoreDNS's functions that make records, over the endpoint slices that the kubernetes plug-in holds.
type endpoints struct{ *cluster }

var errNoEndpoint = errors.New("no such endpoint")

func (e endpoints) serve(ctx context.Context, state request.Request) (int, error) {
	var (
		records, extra []dns.RR
		truncated      bool
		err            error
	)
	switch state.QType() {
	case dns.TypeA:
		records, truncated, err = plugin.A(ctx, e, e.domain, state, nil, plugin.Options{})
	case dns.TypeAAAA:
		records, truncated, err = plugin.AAAA(ctx, e, e.domain, state, nil, plugin.Options{})
	case dns.TypeSRV:
		records, extra, err = plugin.SRV(ctx, e, e.domain, state, plugin.Options{})
	default:
		_, err = e.Services(ctx, state, true, plugin.Options{})
	}
	if e.IsNameError(err) {
		return plugin.BackendError(ctx, e, e.domain, dns.RcodeNameError, state, nil, plugin.Options{})
	}
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	if len(records) == 0 {
		return plugin.BackendError(ctx, e, e.domain, dns.RcodeSuccess, state, nil, plugin.Options{})
	}
	m := new(dns.Msg).SetReply(state.Req)
	m.Authoritative, m.Truncated = true, truncated
	m.Answer, m.Extra = records, extra
	if err := state.W.WriteMsg(m); err != nil {
		return dns.RcodeServerFailure, err
	}
	return dns.RcodeSuccess, nil
}

// IsNameError is part of plugin.ServiceBackend.
func (e endpoints) IsNameError(err error) bool { return errors.Is(err, errNoEndpoint) }

// Services is part of plugin.ServiceBackend: each address and port that a name stands for. A name that exists but
// stands for none is no error.
func (e endpoints) Services(_ context.Context, state request.Request, _ bool, _ plugin.Options) ([]msg.Service, error) {
	if name := state.Name(); !strings.HasSuffix(name, ".endpoints."+e.domain) && name != "endpoints."+e.domain {
		return nil, nil // the zone's own SOA and NS records
	}
	labels, _ := e.below(state.Name())
	labels = labels[:len(labels)-1]
	if len(labels) < 2 {
		if len(labels) == 1 && !e.hasNamespace(labels[0]) {
			return nil, errNoEndpoint
		}
		return nil, nil
	}
	front, name, namespace := labels[:len(labels)-2], labels[len(labels)-2], labels[len(labels)-1]
	wanted, ok := parseFilter(front)
	if !ok {
		return nil, errNoEndpoint
	}
	found := e.matching(name, namespace, wanted)
	if len(found) == 0 && (len(front) > 0 || e.service(name, namespace) == nil) {
		return nil, errNoEndpoint
	}
	return found, nil
}

func (e endpoints) matching(name, namespace string, wanted filter) []msg.Service {
	zone := msg.Path(name+"."+namespace+".endpoints."+e.domain, "c")
	var found []msg.Service
	for _, slice := range e.APIConn.EpIndex(object.EndpointsKey(name, namespace)) {
		for _, subset := range slice.Subsets {
			for _, address := range subset.Addresses {
				host := hostLabel(address)
				for _, port := range subset.Ports {
					if wanted.matches(host, port) {
						found = append(found, msg.Service{
							Host: address.IP,
							Port: int(port.Port),
							TTL:  e.MinTTL(request.Request{}),
							Key:  zone + "/" + host,
						})
					}
				}
			}
		}
	}
	return found
}

// filter is what the labels in front of an endpoints name ask for; zero is everything.
type filter struct{ host, port, protocol string }

func parseFilter(labels []string) (f filter, ok bool) {
	switch len(labels) {
	case 0:
		return filter{}, true
	case 1:
		return filter{host: labels[0]}, true
	case 2:
		port, okPort := strings.CutPrefix(labels[0], "_")
		protocol, okProtocol := strings.CutPrefix(labels[1], "_")
		return filter{port: port, protocol: protocol}, okPort && okProtocol
	}
	return filter{}, false
}

func (f filter) matches(host string, port object.EndpointPort) bool {
	return (f.host == "" || strings.EqualFold(f.host, host)) &&
		(f.port == "" || strings.EqualFold(f.port, port.Name)) &&
		(f.protocol == "" || strings.EqualFold(f.protocol, port.Protocol))
}

// hostLabel names an endpoint by its host name, else by its address.
func hostLabel(address object.EndpointAddress) string {
	if address.Hostname != "" {
		return address.Hostname
	}
	return strings.NewReplacer(".", "-", ":", "-").Replace(address.IP)
}
