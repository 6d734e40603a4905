package egressrouter

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// Environment variables.
const (
	sourceVariable          = "EGRESS_SOURCE"
	gatewayVariable         = "EGRESS_GATEWAY"
	destinationVariable     = "EGRESS_DESTINATION"
	modeVariable            = "EGRESS_ROUTER_MODE"
	httpDestinationVariable = "EGRESS_HTTP_PROXY_DESTINATION"
	dnsDestinationVariable  = "EGRESS_DNS_PROXY_DESTINATION"
	dnsDebugVariable        = "EGRESS_DNS_PROXY_DEBUG"
)

// Modes of an egress router.
const (
	legacyMode    = "legacy"
	initMode      = "init"
	httpProxyMode = "http-proxy"
	dnsProxyMode  = "dns-proxy"
)

// Settings contains the settings of the router container.
type Settings struct {
	// Routes contains the IPv4 route, the IPv6 route, or both in this order.
	Routes []Route
	Mode   string
	// Destination is empty in the proxy modes.
	Destination Destination
}

// Route is the pod's route to the servers of an IP family.
type Route struct {
	// Source is the pod's address outside the cluster, with its network. If the setting has no
	// prefix length, the network contains only this address.
	Source netip.Prefix
	// Gateway is the default gateway.
	Gateway netip.Addr
}

func (r Route) family() ipfamily.Family { return ipfamily.Of(r.Gateway) }

// ParseSettings parses the settings of the router container. It reports all errors.
func ParseSettings(variable func(string) string) (Settings, error) {
	var s Settings
	var errs []error
	var err error
	if s.Routes, err = parseRoutes(variable(sourceVariable), variable(gatewayVariable)); err != nil {
		errs = append(errs, err)
	}
	switch s.Mode = strings.TrimSpace(variable(modeVariable)); s.Mode {
	case "":
		s.Mode = legacyMode
	case legacyMode, initMode, httpProxyMode, dnsProxyMode:
	default:
		errs = append(errs, fmt.Errorf("%s is %q, must be %s, %s or %s", modeVariable, s.Mode, initMode, httpProxyMode, dnsProxyMode))
	}
	if s.redirects() {
		if s.Destination, err = ParseDestination(variable(destinationVariable)); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		errs = append(errs, s.checkFamilies())
	}
	return s, errors.Join(errs...)
}

// checkFamilies returns an error if the pod has no source address for a destination.
func (s Settings) checkFamilies() error {
	for _, server := range s.Destination.servers() {
		hasRoute := slices.ContainsFunc(s.Routes, func(r Route) bool { return r.family() == ipfamily.Of(server) })
		if !hasRoute {
			return fmt.Errorf("%s has no %s address for the server %s of %s", sourceVariable, ipfamily.Of(server), server, destinationVariable)
		}
	}
	return nil
}

// redirects reports whether the pod redirects connections.
func (s Settings) redirects() bool { return s.Mode == legacyMode || s.Mode == initMode }

// parseRoutes parses EGRESS_SOURCE and EGRESS_GATEWAY. Each contains one address, or an IPv4
// address and an IPv6 address, separated by a comma.
func parseRoutes(sources, gateways string) ([]Route, error) {
	routes := map[ipfamily.Family]*Route{}
	var errs []error
	for text := range strings.SplitSeq(sources, ",") {
		source, err := parseSource(strings.TrimSpace(text))
		f := ipfamily.Of(source.Addr())
		switch {
		case err != nil:
			errs = append(errs, err)
		case routes[f] != nil:
			errs = append(errs, fmt.Errorf("%s has two %s addresses", sourceVariable, f))
		default:
			routes[f] = &Route{Source: source}
		}
	}
	for text := range strings.SplitSeq(gateways, ",") {
		gateway, err := parseGateway(strings.TrimSpace(text))
		route := routes[ipfamily.Of(gateway)]
		switch {
		case err != nil:
			errs = append(errs, err)
		case route == nil:
			errs = append(errs, fmt.Errorf("%s has no %s address for the gateway %s", sourceVariable, ipfamily.Of(gateway), gateway))
		case route.Gateway.IsValid():
			errs = append(errs, fmt.Errorf("%s has two %s addresses", gatewayVariable, ipfamily.Of(gateway)))
		case route.Source.Addr() == gateway:
			errs = append(errs, fmt.Errorf("%s and %s are the same address %s", sourceVariable, gatewayVariable, gateway))
		default:
			route.Gateway = gateway
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var list []Route
	for _, f := range []ipfamily.Family{ipfamily.IPv4, ipfamily.IPv6} {
		route := routes[f]
		switch {
		case route == nil:
		case !route.Gateway.IsValid():
			errs = append(errs, fmt.Errorf("%s has no %s address", gatewayVariable, f))
		default:
			list = append(list, *route)
		}
	}
	return list, errors.Join(errs...)
}

func parseSource(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if address, addressErr := netip.ParseAddr(text); addressErr == nil && address.Zone() == "" {
		prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
	}
	if err != nil || !isHost(prefix.Addr()) || prefix.Bits() == 0 {
		return netip.Prefix{}, fmt.Errorf("%s is %q, must be an IP address with an optional prefix length, such as 192.168.12.99/24", sourceVariable, text)
	}
	return prefix, nil
}

// parseGateway parses a gateway's address. As in router advertisements, an IPv6 gateway can have a
// link-local address.
func parseGateway(text string) (netip.Addr, error) {
	address, err := netip.ParseAddr(text)
	if err != nil || !isHost(address) && (!isLinkLocal6(address) || address.Zone() != "") {
		return netip.Addr{}, fmt.Errorf("%s is %q, must be an IP address, such as 192.168.12.1", gatewayVariable, text)
	}
	return address, nil
}

// isHost reports whether an address can belong to another machine, and is valid without a device
// name.
func isHost(address netip.Addr) bool {
	return address.IsValid() && !address.IsUnspecified() && !address.IsLoopback() && !address.IsMulticast() &&
		address != netip.AddrFrom4([4]byte{255, 255, 255, 255}) && !address.Is4In6() && !isLinkLocal6(address) && address.Zone() == ""
}

func isLinkLocal6(address netip.Addr) bool { return address.Is6() && address.IsLinkLocalUnicast() }

// lines returns the lines of a setting, split into fields. It omits comments and blank lines.
func lines(text string) (result [][]string) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
			result = append(result, fields)
		}
	}
	return result
}

// lineError returns an error about a line of a setting.
func lineError(variable string, fields []string, format string, args ...any) error {
	return fmt.Errorf("line %q of %s: %s", strings.Join(fields, " "), variable, fmt.Sprintf(format, args...))
}
