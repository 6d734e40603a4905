package dns

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
)

// names serves OpenShift 3 names that are not in the Kubernetes DNS specification (OpenShift
// Container Platform 3.9, Architecture, 5.1.2). It converts them to the equivalent names for the
// kubernetes plugin.
//
//	<service>.<namespace>.<domain>                 like <service>.<namespace>.svc.<domain>
//	<namespace>.<domain>                           exists, without an address
//	<anything>.<service>.<namespace>.svc.<domain>  the service's address, unless an endpoint or a
//	                                               port has the name
//	<hash>.<service>.<namespace>.svc.<domain>      an endpoint of a headless service, see services
//	openshift.default.svc.<domain>                 the API server, unless a service has the name
//	<name>.<namespace>.endpoints.<domain>          see endpoints
//	_endpoints.<service>.<namespace>.svc.<domain>  like <service>.<namespace>.endpoints.<domain>
//
// The form with <anything> applies to services that have an address. Below a headless service, only
// the service's endpoints have names.
type names struct {
	cluster *cluster
	next    plugin.Handler
	// oldSRV selects the OpenShift 3 form of SRV records (see services).
	oldSRV bool
	// networks contains the networks of Server.Networks.
	networks []netip.Prefix
}

func (n *names) Name() string { return "names" }

func (n *names) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r, Zone: n.cluster.domain}
	if n.isForeign(state.Name()) {
		return n.cluster.Next.ServeDNS(ctx, w, r)
	}
	labels, ok := n.cluster.labelsOf(state.Name())
	if !ok {
		return n.next.ServeDNS(ctx, w, r)
	}
	if !n.cluster.Ready() {
		return dns.RcodeServerFailure, nil
	}
	canonical := n.canonical(ctx, state, labels)
	if !slices.Equal(canonical, labels) {
		alias := strings.Join(canonical, ".") + "." + n.cluster.domain
		w, r = &renameWriter{ResponseWriter: w, from: alias, to: state.QName()}, r.Copy()
		r.Question[0].Name = alias
	}
	state = request.Request{W: w, Req: r, Zone: n.cluster.domain}
	switch zone := canonical[len(canonical)-1]; {
	case zone == "endpoints":
		return serve(ctx, endpoints{n.cluster}, n.cluster.domain, state)
	case zone == "svc" && n.oldSRV && state.QType() == dns.TypeSRV && n.hasAddresses(canonical):
		return serve(ctx, services{n.cluster}, n.cluster.domain, state)
	}
	return n.next.ServeDNS(ctx, w, r)
}

// isForeign reports whether a name is the reverse name of an address outside the networks.
func (n *names) isForeign(name string) bool {
	address, err := netip.ParseAddr(dnsutil.ExtractAddressFromReverse(name))
	return err == nil && len(n.networks) > 0 && !slices.ContainsFunc(n.networks, func(p netip.Prefix) bool { return p.Contains(address) })
}

// canonical returns the labels of the Kubernetes name that is equivalent to the given labels.
func (n *names) canonical(ctx context.Context, state request.Request, labels []string) []string {
	switch zone := labels[len(labels)-1]; {
	case zone == "svc", zone == "endpoints":
	case zone != "pod" && n.cluster.hasNamespace(zone):
		labels = append(slices.Clone(labels), "svc")
	default:
		return labels
	}
	if i := len(labels) - 4; i >= 0 && labels[i] == "_endpoints" {
		return slices.Concat(labels[:i], labels[i+1:len(labels)-1], []string{"endpoints"})
	}
	if labels[len(labels)-1] == "endpoints" {
		return labels
	}
	if len(labels) == 3 && labels[0] == "openshift" && labels[1] == "default" && n.cluster.service(labels[0], labels[1]) == nil {
		return []string{"kubernetes", "default", "svc"}
	}
	if len(labels) <= 3 {
		return labels
	}
	base := labels[len(labels)-3:]
	service := n.cluster.service(base[0], base[1])
	if service != nil && service.Headless() && len(labels) == 4 {
		return append([]string{n.hostOf(service, labels[0])}, base...)
	}
	if service == nil || service.Headless() || len(service.ClusterIPs[0]) == 0 {
		return labels
	}
	exact := state.NewWithQuestion(strings.Join(labels, ".")+"."+n.cluster.domain, state.QType())
	exact.Zone = n.cluster.domain
	if _, err := n.cluster.Records(ctx, exact, true); n.cluster.IsNameError(err) {
		return base
	}
	return labels
}

// hostOf returns the host label of the headless service's endpoint whose address hash is label. If
// there is no such endpoint, it returns label.
func (n *names) hostOf(service *object.Service, label string) string {
	for _, slice := range n.cluster.APIConn.EpIndex(object.EndpointsKey(service.Name, service.Namespace)) {
		for _, subset := range slice.Subsets {
			for _, address := range subset.Addresses {
				if addressHash(address.IP) == label {
					return hostLabel(address)
				}
			}
		}
	}
	return label
}

// hasAddresses reports whether labels are the name of a service that is headless or has a cluster
// IP, or a name below that name.
func (n *names) hasAddresses(labels []string) bool {
	if len(labels) < 3 {
		return false
	}
	service := n.cluster.service(labels[len(labels)-3], labels[len(labels)-2])
	return service != nil && (service.Headless() || len(service.ClusterIPs) > 0 && service.ClusterIPs[0] != "")
}

// renameWriter restores the original query's name in the response.
type renameWriter struct {
	dns.ResponseWriter
	from, to string
}

func (w *renameWriter) WriteMsg(m *dns.Msg) error {
	m = m.Copy()
	for i := range m.Question {
		m.Question[i].Name = w.to
	}
	for _, record := range m.Answer {
		if header := record.Header(); strings.EqualFold(header.Name, w.from) {
			header.Name = w.to
		}
	}
	return w.ResponseWriter.WriteMsg(m)
}
