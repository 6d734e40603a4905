package unenforced

import (
	networkv1 "github.com/openshift/api/network/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// Network returns the feature that warns about the kinds of network policies that a network plugin
// does not enforce. The result is empty if the plugin enforces all kinds.
func Network(plugin string) []apiserver.Feature {
	resources := policies(plugin)
	if len(resources) == 0 {
		return nil
	}
	return []apiserver.Feature{Feature(resources, "networkConfig.networkPluginName is "+plugin)}
}

// policies returns the kinds of network policies that a plugin does not enforce. Slipway cannot
// determine whether an administrator's CNI plugin enforces NetworkPolicies, so it does not warn
// about them.
func policies(plugin string) []schema.GroupVersionResource {
	firewalls := networkv1.GroupVersion.WithResource("egressnetworkpolicies")
	switch plugin {
	case networkplugin.Subnet:
		return []schema.GroupVersionResource{networkingv1.SchemeGroupVersion.WithResource("networkpolicies"), firewalls}
	case networkplugin.CNI:
		return []schema.GroupVersionResource{firewalls}
	}
	return nil
}
