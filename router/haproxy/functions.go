package haproxy

import (
	"cmp"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/environment"
	"github.com/slipway-platform/slipway/router/model"
)

// Route annotations. Source: the documentation section on route-specific annotations.
const (
	annotationBalance   = "haproxy.router.openshift.io/balance"
	annotationCookie    = "haproxy.router.openshift.io/cookie_name"
	annotationWhitelist = "haproxy.router.openshift.io/ip_whitelist"
	annotationHSTS      = "haproxy.router.openshift.io/hsts_header"
	annotationInterval  = "router.openshift.io/haproxy.health.check.interval"
)

// Patterns for values that are allowed in the configuration.
const (
	cookiePattern = `^[A-Za-z0-9_-]+$`
	hstsPattern   = `^max-age=[0-9]{1,10}(;includeSubDomains|;preload){0,2}$`
	numberPattern = `^[1-9][0-9]{0,8}$`
)

// functions returns the functions for the built-in templates. Every value from a route passes
// through one of these functions. They treat an invalid value as missing, so that HAProxy never
// parses a route's value as configuration.
func functions(s environment.Settings) map[string]any {
	return map[string]any{
		"env":        s.Text,
		"on":         s.On,
		"quoted":     quoted,
		"isTrue":     func(value string) bool { return value == "true" || value == "TRUE" },
		"annotation": func(config *model.ServiceAliasConfig, name string) string { return config.Annotations[name] },
		"number":     func(value string) string { return matching(numberPattern, value) },
		"duration":   validDuration,
		"balance":    func(config *model.ServiceAliasConfig) string { return balance(config, s) },
		"cookie": func(config *model.ServiceAliasConfig) string {
			return cmp.Or(matching(cookiePattern, config.Annotations[annotationCookie]), s.Text("ROUTER_COOKIE_NAME"), config.RoutingKeyName)
		},
		"secureCookie": func(config *model.ServiceAliasConfig) bool {
			return config.TLSTermination != "" && config.InsecureEdgeTerminationPolicy != routev1.InsecureEdgeTerminationPolicyAllow
		},
		"whitelist": whitelist,
		"hsts": func(config *model.ServiceAliasConfig) string {
			if config.TLSTermination != routev1.TLSTerminationEdge && config.TLSTermination != routev1.TLSTerminationReencrypt {
				return ""
			}
			return matching(hstsPattern, config.Annotations[annotationHSTS])
		},
	}
}

// matching returns the value if the pattern matches it entirely. Otherwise, it returns "".
func matching(pattern, value string) string {
	if strings.ContainsAny(value, "\r\n") || !regexp.MustCompile(pattern).MatchString(value) {
		return ""
	}
	return value
}

func validDuration(value string) string {
	if _, ok := environment.ParseDuration(value); !ok {
		return ""
	}
	return value
}

// quoted quotes text as a single word in HAProxy's configuration.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// balance returns a route's load balancing algorithm. The sources, in order of precedence, are the
// route's annotation, the router's environment variables and the default. By default, passthrough
// routes are balanced by client address, unless several services share the requests by weight.
func balance(config *model.ServiceAliasConfig, s environment.Settings) string {
	switch algorithm := config.Annotations[annotationBalance]; algorithm {
	case "source", "roundrobin", "leastconn":
		return algorithm
	}
	if config.TLSTermination != routev1.TLSTerminationPassthrough {
		return cmp.Or(s.Text("ROUTER_LOAD_BALANCE_ALGORITHM"), "leastconn")
	}
	if scheme := s.Text("ROUTER_TCP_BALANCE_SCHEME"); scheme != "" {
		return scheme
	}
	weighted := 0
	for _, weight := range config.ServiceUnits {
		if weight > 0 {
			weighted++
		}
	}
	if weighted > 1 {
		return "roundrobin"
	}
	return "source"
}

// perLine is the maximum number of addresses per line. HAProxy accepts at most 64 words per line.
const perLine = 50

// whitelist returns the addresses and networks in the annotation, split into lines. If the
// annotation contains no valid address, all clients are rejected.
func whitelist(config *model.ServiceAliasConfig) (lines [][]string) {
	words := strings.Fields(config.Annotations[annotationWhitelist])
	if len(words) == 0 {
		return nil
	}
	var addresses []string
	for _, word := range words {
		if prefix, err := netip.ParsePrefix(word); err == nil {
			addresses = append(addresses, prefix.Masked().String())
		} else if address, err := netip.ParseAddr(word); err == nil && address.Zone() == "" {
			addresses = append(addresses, address.String())
		}
	}
	if len(addresses) == 0 {
		return [][]string{{"255.255.255.255"}} // an address that no client has
	}
	for ; len(addresses) > perLine; addresses = addresses[perLine:] {
		lines = append(lines, addresses[:perLine])
	}
	return append(lines, addresses)
}

// interval returns the interval between health checks of a route's servers. The shortest interval
// that an annotation can set depends on the number of servers in the project.
func interval(config *model.ServiceAliasConfig, s environment.Settings) string {
	usual, own := s.Text("ROUTER_BACKEND_CHECK_INTERVAL"), config.Annotations[annotationInterval]
	requested, ok := environment.ParseDuration(own)
	if !ok {
		return usual
	}
	shortest := config.ShortestCheck()
	if longest, ok := environment.ParseDuration(usual); ok {
		shortest = min(shortest, longest)
	}
	if requested < shortest {
		return strconv.FormatInt(shortest.Milliseconds(), 10) + "ms"
	}
	return own
}

func portOf(s environment.Settings, name string) string { return strconv.Itoa(s.Number(name)) }
