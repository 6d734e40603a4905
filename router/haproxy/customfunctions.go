package haproxy

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/claim"
	"github.com/slipway-platform/slipway/router/model"
)

// templateFunctions returns the functions that OpenShift 3.11 provides to templates.
func (w *Writer) templateFunctions(state *model.State, certificates []Entry) map[string]any {
	env := func(name string, otherwise ...string) string {
		if value := w.Settings.Text(name); value != "" || len(otherwise) == 0 {
			return value
		}
		return otherwise[0]
	}
	endpoints := func(config model.ServiceAliasConfig, unit model.ServiceUnit) []model.Endpoint {
		return model.EndpointsOf(&config, unit)
	}
	return map[string]any{
		"env":               env,
		"isTrue":            func(value string) bool { parsed, _ := strconv.ParseBool(value); return parsed },
		"isInteger":         func(value string) bool { _, err := strconv.Atoi(value); return err == nil },
		"matchPattern":      matchWhole,
		"firstMatch":        firstMatch,
		"matchValues":       func(value string, allowed ...string) bool { return slices.Contains(allowed, value) },
		"endpointsForAlias": endpoints,
		"processEndpointsForAlias": func(config model.ServiceAliasConfig, unit model.ServiceUnit, order string) []model.Endpoint {
			return ordered(endpoints(config, unit), order == "shuffle")
		},
		"genSubdomainWildcardRegexp": func(host, path string, exact bool) string { return routeExpression(host, path, !exact) },
		"generateRouteRegexp":        routeExpression,
		"genCertificateHostName":     certificateHost,
		"genBackendNamePrefix": func(termination routev1.TLSTerminationType) string {
			name, _, _ := strings.Cut(backendName("", &model.ServiceAliasConfig{TLSTermination: termination}), ":")
			return name
		},
		"generateHAProxyMap":       func(name string, _ any) []string { return expressionTable(name, state, certificates) },
		"validateHAProxyWhiteList": func(list string) bool { return len(list) > 0 && len(strings.Fields(list)) <= perLine },
		"clipHAProxyTimeoutValue":  validDuration,
		"getHTTPAliasesGroupedByHost": func(aliases map[model.ServiceAliasConfigKey]model.ServiceAliasConfig) map[string]map[model.ServiceAliasConfigKey]model.ServiceAliasConfig {
			grouped := map[string]map[model.ServiceAliasConfigKey]model.ServiceAliasConfig{}
			for key, alias := range aliases {
				if alias.TLSTermination == "" || alias.TLSTermination == routev1.TLSTerminationEdge {
					if grouped[alias.Host] == nil {
						grouped[alias.Host] = map[model.ServiceAliasConfigKey]model.ServiceAliasConfig{}
					}
					grouped[alias.Host][key] = alias
				}
			}
			return grouped
		},
		"getPrimaryAliasKey": func(aliases map[string]model.ServiceAliasConfig) string {
			keys := slices.Sorted(maps.Keys(aliases))
			if len(keys) == 0 {
				return ""
			}
			return keys[0]
		},
	}
}

// matchWhole reports whether a pattern matches an entire value. An invalid pattern matches nothing.
func matchWhole(pattern, value string) bool {
	expression, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	return err == nil && expression.MatchString(value)
}

func firstMatch(pattern string, values ...string) string {
	for _, value := range values {
		if matchWhole(pattern, value) {
			return value
		}
	}
	return ""
}

// routeExpression returns a regular expression for a route. It matches the route's host with any
// port, followed by the route's path or any path below it. For a wildcard, it matches any host in
// the route's domain.
func routeExpression(host, path string, wildcard bool) string {
	name := regexp.QuoteMeta(host)
	if wildcard {
		name = `[^\.]*\.` + regexp.QuoteMeta(claim.Domain(host))
	}
	below := `(/.*)?`
	if trimmed := strings.TrimRight(path, "/"); trimmed == "" {
		path = ""
	} else if trimmed != path {
		below = `(.*)?`
	}
	return `^` + name + `(:[0-9]+)?` + regexp.QuoteMeta(path) + below + `$`
}

func certificateHost(host string, wildcard bool) string {
	if wildcard {
		return "*." + claim.Domain(host)
	}
	return host
}

// expressionTable returns a table in OpenShift 3.11's format. Its keys are regular expressions. The
// most specific expressions come first and wildcards come last.
func expressionTable(name string, state *model.State, certificates []Entry) []string {
	var exact, wild []string
	if name == "cert_config.map" {
		for _, entry := range certificates {
			exact = append(exact, certificateOf(entry)+" "+entry.Key)
		}
		return exact
	}
	for key, alias := range state.Aliases {
		value, ok := tableValue(name, key, alias)
		if !ok {
			continue
		}
		expression := routeExpression(alias.Host, alias.Path, alias.IsWildcard)
		if claim.Exact(alias.Annotations) {
			expression = routeExpression(alias.Host, "", alias.IsWildcard)
			expression = strings.TrimSuffix(expression, `(/.*)?$`) + regexp.QuoteMeta(cmp.Or(alias.Path, "/")) + `$`
		}
		line := expression + " " + value
		if alias.IsWildcard {
			wild = append(wild, line)
			continue
		}
		exact = append(exact, line)
	}
	sort.Sort(sort.Reverse(sort.StringSlice(exact)))
	sort.Sort(sort.Reverse(sort.StringSlice(wild)))
	return append(exact, wild...)
}

func tableValue(name string, key model.ServiceAliasConfigKey,
	alias *model.ServiceAliasConfig) (value string, listed bool) {
	backend, insecure := backendName(key, alias), alias.InsecureEdgeTerminationPolicy
	ends := alias.TLSTermination == routev1.TLSTerminationEdge || alias.TLSTermination == routev1.TLSTerminationReencrypt
	switch name {
	case "os_http_be.map":
		return backend, alias.TLSTermination == "" || ends && insecure == routev1.InsecureEdgeTerminationPolicyAllow
	case "os_edge_reencrypt_be.map":
		return backend, ends
	case "os_route_http_redirect.map":
		return string(key), insecure == routev1.InsecureEdgeTerminationPolicyRedirect
	case "os_tcp_be.map":
		return backend, alias.TLSTermination == routev1.TLSTerminationPassthrough
	case "os_sni_passthrough.map":
		return "1", alias.TLSTermination == routev1.TLSTerminationPassthrough
	case "os_wildcard_domain.map":
		return "1", alias.IsWildcard
	}
	return fmt.Sprintf("unknown table %s", name), false
}
