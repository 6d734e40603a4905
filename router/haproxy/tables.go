package haproxy

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/claim"
	"github.com/slipway-platform/slipway/router/model"
	"github.com/slipway-platform/slipway/router/settings"
)

// redirect is the value in the table of HTTP that leads to HTTPS.
const redirect = "redirect"

// tables are the files by which a request finds its backend. A key is a host and the beginning of a path, and the longest that fits counts, which takes
// HAProxy as long with ten thousand routes as with ten. A request is looked up with a '?' behind its path, so that the path /test of a route,
// which is "/test?" and "/test/" in the table, does not fit /testing.
func tables(state *model.State, dir string, s settings.Settings) map[string][]byte {
	plain, secured, passed := map[string]string{}, map[string]string{}, map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(state.Aliases)) {
		alias := state.Aliases[key]
		name := backendName(key, alias)
		switch alias.TLSTermination {
		case "":
			enter(plain, alias, name)
		case routev1.TLSTerminationPassthrough:
			passed[hostOf(alias)] = name
		default:
			enter(secured, alias, name)
			if alias.InsecureEdgeTerminationPolicy == routev1.InsecureEdgeTerminationPolicyAllow {
				enter(plain, alias, name)
			}
		}
		if alias.InsecureEdgeTerminationPolicy == routev1.InsecureEdgeTerminationPolicyRedirect {
			enter(plain, alias, redirect)
		}
	}
	return map[string][]byte{
		"conf/http.map": lines(plain), "conf/https.map": lines(secured), "conf/passthrough.map": lines(passed),
		"conf/certificates.list": certificateList(state, dir, s),
	}
}

// hostOf is the host of a route as requests are looked up: a wildcard has '*' in place of the first label.
func hostOf(alias model.ServiceAliasConfig) string {
	if alias.IsWildcard {
		return "*." + claim.Domain(alias.Host)
	}
	return alias.Host
}

// enter puts a route into a table. The path of another route that ends with a slash keeps what is below it.
func enter(table map[string]string, alias model.ServiceAliasConfig, value string) {
	key := hostOf(alias) + alias.Path
	switch {
	case strings.Trim(alias.Path, "/") == "":
		table[hostOf(alias)+"/"] = value
	case strings.HasSuffix(alias.Path, "/"):
		table[key] = value
	default:
		table[key+"?"] = value
		if _, taken := table[key+"/"]; !taken {
			table[key+"/"] = value
		}
	}
}

func lines(table map[string]string) []byte {
	var text bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(table)) {
		text.WriteString(key + " " + table[key] + "\n")
	}
	return text.Bytes()
}

// certificateList says which certificate is for which host. Of several routes of a host, the one with the shortest path counts.
func certificateList(state *model.State, dir string, s settings.Settings) []byte {
	options := ""
	if s.On("ROUTER_ENABLE_HTTP2") {
		options = " [alpn h2,http/1.1]"
	}
	chosen := map[string]model.ServiceAliasConfigKey{}
	for _, key := range slices.Sorted(maps.Keys(state.Aliases)) {
		alias := state.Aliases[key]
		before, taken := chosen[hostOf(alias)]
		if ownCertificate(alias) && (!taken || len(alias.Path) < len(state.Aliases[before].Path)) {
			chosen[hostOf(alias)] = key
		}
	}
	var text bytes.Buffer
	for _, host := range slices.Sorted(maps.Keys(chosen)) {
		text.WriteString(filepath.Join(dir, certificateFile(chosen[host])) + options + " " + host + "\n")
	}
	return text.Bytes()
}
