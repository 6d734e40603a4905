package attack

import (
	"context"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestPolicyIsNotSilentlyIgnored(t *testing.T) {
	s := tenants(t)
	for path, user := range map[string]*kit.User{
		kit.GroupPath("networking.k8s.io", s.shop, "networkpolicies"):          s.alice,
		kit.GroupPath("network.openshift.io", s.shop, "egressnetworkpolicies"): s.Administrator(),
	} {
		object := "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: closed}, spec: {podSelector: {}}}"
		if strings.Contains(path, "egress") {
			object = "{apiVersion: network.openshift.io/v1, kind: EgressNetworkPolicy, metadata: {name: closed}, spec: {egress: [{type: Deny, to: {cidrSelector: 0.0.0.0/0}}]}}"
		}
		created := user.Rest.Post().AbsPath(path).SetHeader("Content-Type", "application/yaml").Body([]byte(object)).Do(context.Background())
		changed := user.Rest.Patch("application/merge-patch+json").AbsPath(path + "/closed").Body([]byte(`{"metadata":{"labels":{"a":"b"}}}`)).Do(context.Background())
		for verb, result := range map[string]rest.Result{"creation": created, "change": changed} {
			if err := result.Error(); err != nil {
				t.Fatalf("%s: %s: %v", verb, path, err)
			}
			if warnings := result.Warnings(); len(warnings) != 1 || !strings.Contains(warnings[0].Text, "does not enforce them yet") {
				t.Errorf("%s: the warnings of the %s are %v", path, verb, warnings)
			}
		}
	}
	status := s.MustSlipway("status")
	for _, resource := range []string{"networkpolicies", "egressnetworkpolicies"} {
		if !strings.Contains(status, resource+" are stored but not enforced yet") {
			t.Errorf("slipway status does not say that %s are not enforced:\n%s", resource, status)
		}
	}
}
