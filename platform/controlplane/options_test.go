package controlplane

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/admission/reach"
	"github.com/slipway-platform/slipway/apigroup/image"
)

func TestImportSettingsFollowConfiguration(t *testing.T) {
	for _, tt := range []struct {
		name, config, registry string
		allowed                []image.AllowedRegistry
		registries             []string // registries from which imports are always allowed
	}{
		{"every registry by default", "", "docker-registry.default.svc:5000", nil, []string{"docker-registry.default.svc:5000"}},
		{"no registry", "imagePolicyConfig: {allowedRegistriesForImport: []}", "docker-registry.default.svc:5000", []image.AllowedRegistry{}, nil},
		{"named registries", "imagePolicyConfig: {allowedRegistriesForImport: [{domainName: registry.example.com, insecure: true}, {domainName: '*.example.com'}]}",
			"docker-registry.default.svc:5000", []image.AllowedRegistry{{Domain: "registry.example.com", Insecure: true}, {Domain: "*.example.com"}}, []string{"registry.example.com"}},
		{"name of the cluster's registry", "imagePolicyConfig: {internalRegistryHostname: 'registry.shop:5000'}", "registry.shop:5000", nil, []string{"registry.shop:5000"}},
		{"without the cluster's registry", "slipway: {registry: {disabled: true}}", "", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := loadHost(t, tt.config)
			options := h.imageOptions()
			if diff := cmp.Diff(tt.allowed, options.Allowed); diff != "" || options.Registry != tt.registry {
				t.Errorf("got registry %q, want %q; allowed (-want +got):\n%s", options.Registry, tt.registry, diff)
			}
			configured := h.ConfiguredRegistries()
			for _, name := range tt.registries {
				if !slices.Contains(configured, name) {
					t.Errorf("got %q, want one to be %s", configured, name)
				}
			}
			if slices.Contains(configured, "*.example.com") || tt.registry == "" && len(configured) > 0 {
				t.Errorf("got %q", configured)
			}
		})
	}
}

func TestExternalAddressesExcludeClusterNetworks(t *testing.T) {
	h := loadHost(t, "networkConfig: {clusterNetworks: [{cidr: 10.1.0.0/16, hostSubnetLength: 8}, {cidr: 10.2.0.0/16, hostSubnetLength: 8}], "+
		"serviceNetworkCIDR: 10.3.0.0/16, externalIPNetworkCIDRs: [192.0.2.0/24]}")
	h.Address, h.SecondAddress = netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("2001:db8::7")
	want := reach.Networks{
		External: []string{"192.0.2.0/24"}, Ingress: h.Master.IngressNetwork(),
		Pods:     []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.2.0.0/16")},
		Services: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16")},
		Hosts:    []netip.Addr{h.Address, h.SecondAddress}, Resolver: netip.MustParseAddr("169.254.20.10"),
	}
	if got := h.networks(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
