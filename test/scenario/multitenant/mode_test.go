package multitenant

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/test/kit"
)

// setPlugin changes the network plugin in the master's configuration and restarts the control
// plane.
func (s tenants) setPlugin(t *testing.T, from, to string) {
	t.Helper()
	kit.Edit(t, s.MasterFile(), from, to)
	s.Kill("control-plane")
	s.WaitFor("network plugin "+to, func(context.Context) error {
		plugin, err := s.TryOC("get", "clusternetwork", "default", "-o", "jsonpath={.pluginName}")
		if err == nil && plugin != to {
			err = fmt.Errorf("it is %s", plugin)
		}
		return err
	})
}

// denyAll creates a policy that isolates all pods in the blue project. It returns the API server's
// warnings.
func (s tenants) denyAll(t *testing.T) string {
	t.Helper()
	var warnings bytes.Buffer
	config := rest.CopyConfig(s.Config)
	config.WarningHandler = rest.NewWarningWriter(&warnings, rest.WarningWriterOptions{})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny-all"}}
	if _, err := client.NetworkingV1().NetworkPolicies(s.Namespace).Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return warnings.String()
}

func TestModeChangesOnARunningCluster(t *testing.T) {
	s := sharedTenants(t)
	s.reach(s.blue, s.red, false)

	s.setPlugin(t, networkplugin.Multitenant, networkplugin.Subnet)
	s.reach(s.blue, s.red, true)
	if _, err := s.TryOC("adm", "pod-network", "isolate-projects", s.red.Namespace); err == nil || !strings.Contains(err.Error(), `using plugin: "`+networkplugin.Subnet+`"`) {
		t.Errorf("oc adm pod-network: %v", err)
	}
	if warnings := s.denyAll(t); !strings.Contains(warnings, "NetworkPolicy: this cluster stores objects of this kind but does not enforce them") {
		t.Errorf("warnings about a network policy: %q", warnings)
	}
	s.reach(s.blue, s.red, true)
	networkCheck(t, s.Cluster)

	s.setPlugin(t, networkplugin.Subnet, networkplugin.NetworkPolicy)
	isolated := []request{{s.red, "near", s.blue.addresses("far", "")[0], ""}, {s.red, "far", s.blue.addresses("near", "")[0], ""}}
	for _, r := range isolated {
		s.WaitFor("isolation by the policy", func(context.Context) error {
			if r.send() == nil {
				return fmt.Errorf("%s gets a response", r)
			}
			return nil
		})
	}
	for _, r := range requests(s.blue, s.red) {
		s.WaitFor(r.String(), func(context.Context) error { return r.send() })
	}
	s.OC("delete", "networkpolicy", "deny-all")
	networkCheck(t, s.Cluster)

	s.setPlugin(t, networkplugin.NetworkPolicy, networkplugin.Multitenant)
	s.reach(s.blue, s.red, false)
	s.reach(s.blue, s.blue, true)
}
