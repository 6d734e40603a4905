package describe

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	networkv1 "github.com/openshift/api/network/v1"
	projectv1 "github.com/openshift/api/project/v1"
	quotav1 "github.com/openshift/api/quota/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubectldescribe "k8s.io/kubectl/pkg/describe"

	"github.com/slipway-platform/slipway/cli/objects"
)

// project writes a project with its quotas and limits.
func project(p *page, o *projectv1.Project) error {
	p.metadata(o.ObjectMeta)
	p.field("Display Name", o.Annotations["openshift.io/display-name"])
	p.field("Description", o.Annotations["openshift.io/description"])
	p.field("Status", o.Status.Phase)
	p.field("Node Selector", strings.ReplaceAll(o.Annotations[projectv1.ProjectNodeSelector], ",", ", "))
	quotas, err := objects.List[corev1.ResourceQuota](p.ctx, p.client, corev1.SchemeGroupVersion.WithResource("resourcequotas"), o.Name, metav1.ListOptions{})
	if err != nil {
		return err
	}
	limits, err := objects.List[corev1.LimitRange](p.ctx, p.client, corev1.SchemeGroupVersion.WithResource("limitranges"), o.Name, metav1.ListOptions{})
	if err != nil {
		return err
	}
	p.section("Quota", len(quotas), func(w kubectldescribe.PrefixWriter) {
		kubectldescribe.DescribeResourceQuotas(&corev1.ResourceQuotaList{Items: quotas}, w)
	})
	p.section("Resource limits", len(limits), func(w kubectldescribe.PrefixWriter) {
		kubectldescribe.DescribeLimitRanges(&corev1.LimitRangeList{Items: limits}, w)
	})
	return nil
}

// section writes a heading and kubectl's description of the objects, without the description's
// first line. If count is 0, it writes <none> instead of the description.
func (p *page) section(name string, count int, write func(kubectldescribe.PrefixWriter)) {
	if count == 0 {
		p.field(name, "")
		return
	}
	var text bytes.Buffer
	write(kubectldescribe.NewPrefixWriter(&text))
	_, rows, _ := strings.Cut(strings.TrimLeft(text.String(), "\n"), "\n")
	p.line("%s:", name)
	p.text.WriteString(rows)
}

// clusterQuota writes a quota that spans several projects. It is a ClusterResourceQuota or, for
// users of one of the projects, an AppliedClusterResourceQuota.
func clusterQuota(p *page, q *quotav1.ClusterResourceQuota) error {
	p.metadata(q.ObjectMeta)
	var namespaces []string
	for _, status := range q.Status.Namespaces {
		namespaces = append(namespaces, status.Namespace)
	}
	p.field("Namespace Selector", fmt.Sprintf("%q", namespaces))
	p.field("Label Selector", metav1.FormatLabelSelector(q.Spec.Selector.LabelSelector))
	p.field("AnnotationSelector", q.Spec.Selector.AnnotationSelector)
	if len(q.Spec.Quota.Scopes) > 0 {
		p.list("Scopes", texts(q.Spec.Quota.Scopes))
	}
	p.line("Resource\tUsed\tHard\n--------\t----\t----")
	for _, name := range sortedResources(q.Spec.Quota.Hard) {
		hard, quantity := q.Spec.Quota.Hard[name], q.Status.Total.Used[name]
		p.line("%s\t%s\t%s", name, quantity.String(), hard.String())
	}
	return nil
}

func sortedResources(list corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func netNamespace(p *page, n *networkv1.NetNamespace) error {
	p.metadata(n.ObjectMeta)
	p.field("NetName", n.NetName)
	p.field("NetID", n.NetID)
	p.list("Egress IPs", texts(n.EgressIPs))
	return nil
}

func hostSubnet(p *page, h *networkv1.HostSubnet) error {
	p.metadata(h.ObjectMeta)
	p.field("Node", h.Host)
	p.field("Node IP", h.HostIP)
	p.field("Pod Subnet", h.Subnet)
	p.list("Egress CIDRs", texts(h.EgressCIDRs))
	p.list("Egress IPs", texts(h.EgressIPs))
	return nil
}

func clusterNetwork(p *page, c *networkv1.ClusterNetwork) error {
	p.metadata(c.ObjectMeta)
	p.field("Service Network", c.ServiceNetwork)
	p.field("Plugin Name", c.PluginName)
	p.line("ClusterNetworks:")
	p.line("\tCIDR\tHost Subnet Length")
	entries := c.ClusterNetworks
	if len(entries) == 0 && c.Network != "" {
		entries = []networkv1.ClusterNetworkEntry{{CIDR: c.Network, HostSubnetLength: c.HostSubnetLength}}
	}
	for _, entry := range entries {
		p.line("\t%s\t%d", entry.CIDR, entry.HostSubnetLength)
	}
	return nil
}

func egressPolicy(p *page, e *networkv1.EgressNetworkPolicy) error {
	p.metadata(e.ObjectMeta)
	var rules []string
	for _, rule := range e.Spec.Egress {
		rules = append(rules, string(rule.Type)+" to "+cmp.Or(rule.To.CIDRSelector, rule.To.DNSName))
	}
	p.lines("Rule", rules)
	return nil
}
