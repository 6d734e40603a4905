package platform

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
		registries             []string // registries from which imports are always possible
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
			configured := h.configuredRegistries()
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
	h.address, h.second = netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("2001:db8::7")
	want := reach.Networks{
		External: []string{"192.0.2.0/24"}, Ingress: h.Master.IngressNetwork(),
		Pods:     []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.2.0.0/16")},
		Services: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16")},
		Hosts:    []netip.Addr{h.address, h.second}, Resolver: netip.MustParseAddr("169.254.20.10"),
	}
	if got := h.networks(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPublicAddressesOfConsoleAndAPIServer(t *testing.T) {
	for _, tt := range []struct {
		name, config, address, second, want string
	}{
		{"before the address is known", "", "", "", "https://localhost:8443/console"},
		{"address of the machine", "", "203.0.113.1", "2001:db8::1", "https://203.0.113.1:8443/console"},
		{"machine without an address", "", "192.0.2.1", "", "https://192.0.2.1:8443/console"},
		{"machine with only an IPv6 address", "", "192.0.2.1", "2001:db8::1", "https://[2001:db8::1]:8443/console"},
		{"configured address", "oauthConfig: {masterPublicURL: 'https://master.example.com/'}", "", "", "https://master.example.com/console"},
		{"other port", "servingInfo: {bindAddress: '0.0.0.0:443'}", "192.0.2.1", "", "https://192.0.2.1:443/console"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := loadHost(t, tt.config)
			if tt.address != "" {
				h.address = netip.MustParseAddr(tt.address)
			}
			h.second, _ = netip.ParseAddr(tt.second)
			if got := h.ConsoleURL(); got != tt.want && got != tt.want+"/" {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
