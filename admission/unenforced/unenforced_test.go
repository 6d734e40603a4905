package unenforced

import (
	"context"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// recorder collects warnings.
type recorder struct{ texts []string }

func (r *recorder) AddWarning(_, text string) { r.texts = append(r.texts, text) }

func TestOnlyConfiguredResourcesCauseWarnings(t *testing.T) {
	policies := networkingv1.SchemeGroupVersion.WithResource("networkpolicies")
	plugin := newWarner([]schema.GroupVersionResource{policies}, "of its mode")
	for _, c := range []struct {
		resource    schema.GroupVersionResource
		subresource string
		operation   admission.Operation
		want        []string
	}{
		{policies, "", admission.Create, []string{Text("NetworkPolicy", "of its mode")}},
		{policies, "", admission.Update, []string{Text("NetworkPolicy", "of its mode")}},
		{policies, "status", admission.Update, nil},
		{networkingv1.SchemeGroupVersion.WithResource("ingresses"), "", admission.Create, nil},
	} {
		var got recorder
		ctx := warning.WithWarningRecorder(context.Background(), &got)
		request := admission.NewAttributesRecord(nil, nil, networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), "shop", "x", c.resource, c.subresource, c.operation,
			&metav1.CreateOptions{}, false, &user.DefaultInfo{})
		if err := plugin.Validate(ctx, request, nil); err != nil || !slices.Equal(got.texts, c.want) {
			t.Errorf("%s of %s %s: warnings %q, %v, want %q", c.operation, c.resource.Resource, c.subresource, got.texts, err, c.want)
		}
	}
}

func TestNetworkReturnsPoliciesThatPluginDoesNotEnforce(t *testing.T) {
	const policies, firewalls = "networkpolicies.networking.k8s.io", "egressnetworkpolicies.network.openshift.io"
	tests := map[string][]string{
		networkplugin.Subnet:        {policies, firewalls},
		networkplugin.Multitenant:   nil,
		networkplugin.NetworkPolicy: nil,
		networkplugin.CNI:           {firewalls},
	}
	for _, plugin := range networkplugin.Names() {
		want, ok := tests[plugin]
		if !ok {
			t.Errorf("no test case for the plugin %q", plugin)
		}
		var got []string
		for _, feature := range Network(plugin) {
			for _, added := range feature.Admission {
				plugin, err := added.New(nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, resource := range plugin.(*warner).resources {
					got = append(got, resource.GroupResource().String())
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s does not enforce %q, want %q", plugin, got, want)
		}
	}
}
