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
	path, user := kit.GroupPath("network.openshift.io", s.shop, "egressnetworkpolicies"), s.Administrator()
	object := "{apiVersion: network.openshift.io/v1, kind: EgressNetworkPolicy, metadata: {name: closed}, spec: {egress: [{type: Deny, to: {cidrSelector: 0.0.0.0/0}}]}}"
	created := user.Rest.Post().AbsPath(path).SetHeader("Content-Type", "application/yaml").Body([]byte(object)).Do(context.Background())
	changed := user.Rest.Patch("application/merge-patch+json").AbsPath(path + "/closed").Body([]byte(`{"metadata":{"labels":{"a":"b"}}}`)).Do(context.Background())
	for verb, result := range map[string]rest.Result{"creation": created, "change": changed} {
		if err := result.Error(); err != nil {
			t.Fatalf("%s: %v", verb, err)
		}
		if warnings := result.Warnings(); len(warnings) != 1 || !strings.Contains(warnings[0].Text, "does not enforce them yet") {
			t.Errorf("the warnings of the %s are %v", verb, warnings)
		}
	}
	if status := s.MustSlipway("status"); !strings.Contains(status, "egressnetworkpolicies are stored but not enforced yet") {
		t.Errorf("slipway status does not say that the policy is not enforced:\n%s", status)
	}
}
