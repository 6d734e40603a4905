package haproxy

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/model"
)

// backendName returns the name of a route's backend. The name identifies the route in metrics and
// logs.
func backendName(key model.ServiceAliasConfigKey, alias *model.ServiceAliasConfig) string {
	kind := "be_http:"
	switch alias.TLSTermination {
	case routev1.TLSTerminationEdge:
		kind = "be_edge_http:"
	case routev1.TLSTerminationReencrypt:
		kind = "be_secure:"
	case routev1.TLSTerminationPassthrough:
		kind = "be_tcp:"
	}
	return kind + string(key)
}

// uncheckedSuffix is the suffix in the names of servers without health checks. HAProxy cannot
// enable health checks for a running server, so the server is replaced by another server that has
// the same address and health checks.
const uncheckedSuffix = ":unchecked"

// servers returns a backend server for each endpoint of the route's services.
func (w *Writer) servers(key model.ServiceAliasConfigKey, alias *model.ServiceAliasConfig,
	state *model.State, authority bool) (servers []Server) {
	shuffle := w.Settings.Text("ROUTER_BACKEND_PROCESS_ENDPOINTS") == "shuffle"
	for _, unit := range slices.Sorted(maps.Keys(alias.ServiceUnitNames)) {
		service := state.ServiceUnits[unit]
		_, name, _ := strings.Cut(service.Name, "/")
		for _, endpoint := range ordered(model.EndpointsOf(alias, service), shuffle) {
			server := Server{
				Name: strings.Join([]string{"pod", endpoint.TargetName, name, endpoint.PortName, endpoint.IP, endpoint.Port}, ":"),
				IP:   endpoint.IP, Port: endpoint.Port, Weight: alias.ServiceUnitNames[unit],
				Checked: alias.ActiveEndpoints > 1 && !endpoint.NoHealthCheck,
			}
			if !server.Checked {
				server.Name += uncheckedSuffix
			}
			server.Options = w.options(key, alias, service, server.Checked, authority)
			servers = append(servers, server)
		}
	}
	return servers
}

// options returns the options that follow a server's address in the configuration. The options
// never change while the server exists. authority reports whether service CA certificates are
// available.
func (w *Writer) options(key model.ServiceAliasConfigKey, alias *model.ServiceAliasConfig,
	service model.ServiceUnit, checked, authority bool) string {
	var words []string
	if alias.TLSTermination == routev1.TLSTerminationReencrypt {
		words = append(words, "ssl")
		switch {
		case alias.Certificates[alias.Host+"_pod"].Contents != "":
			words = append(words, "verify required ca-file "+filepath.Join(w.Dir, authoritiesFile(key)))
		case authority:
			words = append(words, "verify required ca-file "+filepath.Join(w.Dir, serviceCAFile))
		default:
			words = append(words, "verify none")
		}
		if alias.VerifyServiceHostname && authority {
			words = append(words, "verifyhost "+service.Hostname)
		}
	}
	if checked {
		words = append(words, "check inter "+interval(alias, w.Settings))
	}
	return strings.Join(words, " ")
}
