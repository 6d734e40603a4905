package diagnostics

// problem is a check's finding. Its ID identifies the kind of problem.
type problem struct{ id, reason string }

// String returns the text for the user: the ID, the reason and the remedy.
func (p problem) String() string { return p.id + ": " + p.reason + "; " + remedies[p.id] }

// unchecked is the problem ID that is used if a check could not read its input.
const unchecked = "unchecked"

// remedies maps problem IDs to remedies.
var remedies = map[string]string{
	unchecked: "check the connection with `oc whoami`, and your permissions with `oc auth can-i --list`",

	"registry":             "`slipway status` and `slipway logs registry` on the masters show the problem",
	"role-differs":         "restore the default: oc adm policy reconcile-cluster-roles --confirm",
	"role-binding-differs": "restore the default: oc adm policy reconcile-cluster-role-bindings --confirm",
	"constraint-differs":   "restore the default: oc adm policy reconcile-sccs --confirm",
	"route-unserved":       "`oc describe route` shows the reason",
	"route-certificate":    "replace the certificate: oc edit route",
	"node-not-ready":       "`oc describe node` shows the reason",
	"nodes-unusable":       "`oc get nodes` shows their states; to make one schedulable, run: oc adm uncordon",
	"usage-missing":        "`slipway status` on the masters and on the node shows the problem; after a start, it takes ten seconds until usage is available",
	"context-missing":      "choose another: oc config use-context NAME",
	"context-cluster":      "log in again: oc login URL",
	"context-user":         "log in again: oc login",
	"external-address":     "remove the address from the service, or allow it in externalIPNetworkCIDRs of master-config.yaml",

	"pod-start":      "`oc describe node` and `slipway status` on the node show the problem",
	"pod-to-pod":     "allow the packets of pods in the firewalls of the hosts (UDP port 4789 between network segments), and look for them with `slipway network capture`",
	"pod-to-service": "`slipway status` and `slipway logs node --grep proxy` on the node show whether the service proxy works",
	"dns":            "`slipway status` and `slipway logs node --grep dns` on the node show whether the DNS server of pods works",
	"pod-to-node":    "allow the port of the kubelet in the firewall of the node",
	"isolation":      "`slipway status` on the node shows whether the component network-policy works, and `oc get clusternetwork default` shows which network plugin applies",
	"external":       "check the routes and the firewall of the node, and its chain OPENSHIFT-ADMIN-OUTPUT-RULES",
}
