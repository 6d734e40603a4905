package haproxy

import (
	"cmp"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/model"
	"github.com/slipway-platform/slipway/router/settings"
)

// Route annotations. Source: section on route-specific annotations.
const (
	annotationBalance   = "haproxy.router.openshift.io/balance"
	annotationCookie    = "haproxy.router.openshift.io/cookie_name"
	annotationWhitelist = "haproxy.router.openshift.io/ip_whitelist"
	annotationHSTS      = "haproxy.router.openshift.io/hsts_header"
	annotationInterval  = "router.openshift.io/haproxy.health.check.interval"
)

// Patterns of values that are allowed in the configuration.
const (
	cookiePattern = `^[A-Za-z0-9_-]+$`
	hstsPattern   = `^max-age=[0-9]{1,10}(;includeSubDomains|;preload){0,2}$`
	numberPattern = `^[1-9][0-9]{0,8}$`
)

// functions returns the functions of the built-in templates. Every value of a route passes through
// one of them. They treat an invalid value as missing, so that no value of a route is parsed as
// configuration.
func functions(s settings.Settings) map[string]any {
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

// matching returns a value if the pattern matches the whole value, or "".
func matching(pattern, value string) string {
	if strings.ContainsAny(value, "\r\n") || !regexp.MustCompile(pattern).MatchString(value) {
		return ""
	}
	return value
}

func validDuration(value string) string {
	if _, ok := settings.ParseDuration(value); !ok {
		return ""
	}
	return value
}

// quoted quotes a text as one word of HAProxy's configuration.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// balance returns the load balancing algorithm of a route: from its annotation, from the router's
// variables, or the default. By default, passthrough routes balance by the client's address, unless
// several services share the requests by weight.
func balance(config *model.ServiceAliasConfig, s settings.Settings) string {
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

// perLine is the number of addresses per line. HAProxy reads 64 words of a line.
const perLine = 50

// whitelist returns the addresses and networks of the annotation in lines. An annotation without
// any valid address rejects every client.
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
		return [][]string{{"255.255.255.255"}} // no client has this address
	}
	for ; len(addresses) > perLine; addresses = addresses[perLine:] {
		lines = append(lines, addresses[:perLine])
	}
	return append(lines, addresses)
}

// interval returns the time between checks of a route's servers. The number of the project's
// servers limits how far an annotation can shorten it.
func interval(config *model.ServiceAliasConfig, s settings.Settings) string {
	usual, own := s.Text("ROUTER_BACKEND_CHECK_INTERVAL"), config.Annotations[annotationInterval]
	requested, ok := settings.ParseDuration(own)
	if !ok {
		return usual
	}
	shortest := config.ShortestCheck()
	if longest, ok := settings.ParseDuration(usual); ok {
		shortest = min(shortest, longest)
	}
	if requested < shortest {
		return strconv.FormatInt(shortest.Milliseconds(), 10) + "ms"
	}
	return own
}

func portOf(s settings.Settings, name string) string { return strconv.Itoa(s.Number(name)) }
