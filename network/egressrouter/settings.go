package egressrouter

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
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
	// Source is the pod's address outside of the cluster, with its network. If the setting has no
	// prefix length, the network contains only this address.
	Source netip.Prefix
	// Gateway is the default gateway.
	Gateway netip.Addr
	Mode    string
	// Destination is empty in the proxy modes.
	Destination Destination
}

// ParseSettings parses the settings of the router container. It reports all errors.
func ParseSettings(variable func(string) string) (Settings, error) {
	var s Settings
	var errs []error
	var err error
	if s.Source, err = parseSource(strings.TrimSpace(variable(sourceVariable))); err != nil {
		errs = append(errs, err)
	}
	if s.Gateway, err = parseGateway(strings.TrimSpace(variable(gatewayVariable))); err != nil {
		errs = append(errs, err)
	}
	if s.Gateway.IsValid() && s.Gateway == s.Source.Addr() {
		errs = append(errs, fmt.Errorf("%s and %s are the same address %s", sourceVariable, gatewayVariable, s.Gateway))
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
	return s, errors.Join(errs...)
}

// redirects reports whether the pod redirects connections.
func (s Settings) redirects() bool { return s.Mode == legacyMode || s.Mode == initMode }

func parseSource(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if address, addressErr := netip.ParseAddr(text); addressErr == nil && address.Zone() == "" {
		prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
	}
	if err != nil || !isHost(prefix.Addr()) || prefix.Bits() == 0 {
		return netip.Prefix{}, fmt.Errorf("%s is %q, must be an IPv4 address with an optional prefix length, such as 192.168.12.99/24", sourceVariable, text)
	}
	return prefix, nil
}

func parseGateway(text string) (netip.Addr, error) {
	address, err := netip.ParseAddr(text)
	if err != nil || !isHost(address) {
		return netip.Addr{}, fmt.Errorf("%s is %q, must be an IPv4 address, such as 192.168.12.1", gatewayVariable, text)
	}
	return address, nil
}

// isHost reports whether an address can belong to another machine.
func isHost(address netip.Addr) bool {
	return address.Is4() && !address.IsUnspecified() && !address.IsLoopback() && !address.IsMulticast() &&
		address != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

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
