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

// endpoints serves the OpenShift 3 names for a service's endpoints, even if the service has no
// selector or no address:
//
//	<name>.<namespace>.endpoints.<domain>
//	        A, AAAA: the ready endpoints; SRV: with their ports
//	_<port>._<protocol>.<name>.<namespace>.endpoints.<domain>
//	        the endpoints with that port
//	<host>.<name>.<namespace>.endpoints.<domain>
//	        one endpoint, by its host name or its address with dashes
//
// endpoints is a plugin.ServiceBackend. CoreDNS's functions create records from the addresses that
// it returns, which come from the kubernetes plugin's endpoint slices.
type endpoints struct{ *cluster }

var errNoEndpoint = errors.New("endpoint does not exist")

// serve writes a backend's response to a query.
func serve(ctx context.Context, backend plugin.ServiceBackend, domain string, state request.Request) (int, error) {
	var (
		records, extra []dns.RR
		truncated      bool
		err            error
	)
	switch state.QType() {
	case dns.TypeA:
		records, truncated, err = plugin.A(ctx, backend, domain, state, nil, plugin.Options{})
	case dns.TypeAAAA:
		records, truncated, err = plugin.AAAA(ctx, backend, domain, state, nil, plugin.Options{})
	case dns.TypeSRV:
		records, extra, err = plugin.SRV(ctx, backend, domain, state, plugin.Options{})
	default:
		_, err = backend.Services(ctx, state, true, plugin.Options{})
	}
	if backend.IsNameError(err) {
		return plugin.BackendError(ctx, backend, domain, dns.RcodeNameError, state, nil, plugin.Options{})
	}
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	if len(records) == 0 {
		return plugin.BackendError(ctx, backend, domain, dns.RcodeSuccess, state, nil, plugin.Options{})
	}
	m := new(dns.Msg).SetReply(state.Req)
	m.Authoritative, m.Truncated = true, truncated
	m.Answer, m.Extra = records, extra
	if err := state.W.WriteMsg(m); err != nil {
		return dns.RcodeServerFailure, err
	}
	return dns.RcodeSuccess, nil
}

// IsNameError implements plugin.ServiceBackend.
func (e endpoints) IsNameError(err error) bool { return errors.Is(err, errNoEndpoint) }

// Services implements plugin.ServiceBackend. It returns the addresses and ports for a name. It
// returns no error for an existing name without addresses.
func (e endpoints) Services(_ context.Context, state request.Request, _ bool, _ plugin.Options) ([]msg.Service, error) {
	if name := state.Name(); !strings.HasSuffix(name, ".endpoints."+e.domain) && name != "endpoints."+e.domain {
		return nil, nil // the zone's own SOA and NS records need no addresses
	}
	labels, _ := e.labelsOf(state.Name())
	labels = labels[:len(labels)-1]
	if len(labels) < 2 {
		if len(labels) == 1 && !e.hasNamespace(labels[0]) {
			return nil, errNoEndpoint
		}
		return nil, nil
	}
	front, name, namespace := labels[:len(labels)-2], labels[len(labels)-2], labels[len(labels)-1]
	f, ok := parseFilter(front)
	if !ok {
		return nil, errNoEndpoint
	}
	services := e.matching(name, namespace, f)
	if len(services) == 0 && (len(front) > 0 || e.service(name, namespace) == nil) {
		return nil, errNoEndpoint
	}
	return services, nil
}

func (e endpoints) matching(name, namespace string, f filter) []msg.Service {
	zone := msg.Path(name+"."+namespace+".endpoints."+e.domain, "c")
	var services []msg.Service
	for _, slice := range e.APIConn.EpIndex(object.EndpointsKey(name, namespace)) {
		for _, subset := range slice.Subsets {
			for _, address := range subset.Addresses {
				host := hostLabel(address)
				for _, port := range subset.Ports {
					if f.matches(host, port) {
						services = append(services, msg.Service{
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
	return services
}

// filter contains the conditions that the labels before a service's name specify in a query. The
// zero value matches all endpoints.
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

// hostLabel returns an endpoint's label: the endpoint's host name or, if there is none, the
// endpoint's address with dashes.
func hostLabel(address object.EndpointAddress) string {
	if address.Hostname != "" {
		return address.Hostname
	}
	return strings.NewReplacer(".", "-", ":", "-").Replace(address.IP)
}
