package dns

import (
	"context"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
)

// names serves the names that OpenShift 3 had and Kubernetes' DNS specification has not (OpenShift Container Platform
// 3.9, Architecture, 5.1.2): it asks the kubernetes plug-in for the name that means the same.
//
//	<service>.<namespace>.<domain>                      the default form: as <service>.<namespace>.svc.<domain>
//	<namespace>.<domain>                                exists, without an address
//	<anything>.<service>.<namespace>.svc.<domain>       the service's address, unless it names one of its endpoints or ports
//	openshift.default.svc.<domain>                      the API server, unless there is a service of this name
//	<name>.<namespace>.endpoints.<domain>               see endpoints
//
// A wildcard stands for services with an address; below a headless service only its endpoints have names.
type names struct {
	cluster *cluster
	next    plugin.Handler
}

func (n *names) Name() string { return "names" }

func (n *names) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r, Zone: n.cluster.domain}
	labels, ok := n.cluster.below(state.Name())
	if !ok {
		return n.next.ServeDNS(ctx, w, r)
	}
	if !n.cluster.Ready() {
		return dns.RcodeServerFailure, nil
	}
	if labels[len(labels)-1] == "endpoints" {
		return endpoints{n.cluster}.serve(ctx, state)
	}
	other := n.canonical(ctx, state, labels)
	if slices.Equal(other, labels) {
		return n.next.ServeDNS(ctx, w, r)
	}
	alias := strings.Join(other, ".") + "." + n.cluster.domain
	asked := r.Copy()
	asked.Question[0].Name = alias
	return n.next.ServeDNS(ctx, &renamed{ResponseWriter: w, from: alias, to: state.QName()}, asked)
}

// canonical returns the labels of the Kubernetes name that means the same as the given one.
func (n *names) canonical(ctx context.Context, state request.Request, labels []string) []string {
	switch last := labels[len(labels)-1]; {
	case last == "svc":
	case last != "pod" && n.cluster.hasNamespace(last):
		labels = append(slices.Clone(labels), "svc")
	default:
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

// renamed puts the name that was asked for back into the answer for the name that was looked up.
type renamed struct {
	dns.ResponseWriter
	from, to string
}

func (w *renamed) WriteMsg(m *dns.Msg) error {
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
