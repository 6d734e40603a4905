package haproxy

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/claim"
	"github.com/slipway-platform/slipway/router/model"
)

// redirect is the value in the table of HTTP that leads to HTTPS.
const redirect = "redirect"

// terminated is the value in the table of SNI of hosts whose TLS ends here: the backend that leads there.
const terminated = "to_sni"

// The tables by which a request finds its backend. A key is a host and the beginning of a path, and the longest that fits counts, which takes
// HAProxy as long with ten thousand routes as with ten. A request is looked up with a '?' behind its path, so that the path /test of a route,
// which is "/test?" and "/test/" in the table, does not fit /testing.
const (
	httpTable        = "conf/http.map"
	httpsTable       = "conf/https.map"
	passthroughTable = "conf/passthrough.map"
)

// hostPart is what the routes of a host have brought into the tables.
type hostPart struct {
	routes      map[model.ServiceAliasConfigKey]bool
	tables      map[string]map[string]string
	certificate model.ServiceAliasConfigKey // the route whose certificate counts
}

// join notes that a route is of a host, which has changed by that.
func (w *Writer) join(key model.ServiceAliasConfigKey, host string, changed map[string]bool) {
	changed[host] = true
	if w.hosts[host] == nil {
		w.hosts[host] = &hostPart{routes: map[model.ServiceAliasConfigKey]bool{}}
	}
	w.hosts[host].routes[key] = true
}

// leave notes that a route is no longer of a host.
func (w *Writer) leave(key model.ServiceAliasConfigKey, host string, changed map[string]bool) {
	changed[host] = true
	delete(w.hosts[host].routes, key)
}

// changeTables brings the tables up to date for hosts whose routes have changed.
func (w *Writer) changeTables(next *Config, hosts map[string]bool) {
	gone, come := map[string]map[string]bool{}, map[string][]Entry{}
	var certificates []Entry
	for table := range next.Tables {
		gone[table] = map[string]bool{}
	}
	for host := range hosts {
		part := w.hosts[host]
		for table, entries := range part.tables {
			for key := range entries {
				gone[table][key] = true
			}
		}
		w.enterHost(part)
		for table, entries := range part.tables {
			for key, value := range entries {
				come[table] = append(come[table], Entry{key, value})
			}
		}
		if part.certificate != "" {
			certificates = append(certificates, Entry{host, w.certificateLine(part.certificate)})
		}
		if len(part.routes) == 0 {
			delete(w.hosts, host)
		}
	}
	before := next.Tables
	next.Tables = make(map[string][]Entry, len(before))
	for table, entries := range before {
		next.Tables[table] = patchedEntries(entries, gone[table], come[table])
	}
	next.Certificates = patchedEntries(next.Certificates, hosts, certificates)
}

func patchedEntries(entries []Entry, gone map[string]bool, come []Entry) []Entry {
	slices.SortFunc(come, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return patched(entries, func(e Entry) string { return e.Key }, gone, come)
}

// enterHost makes the entries of a host anew. Of several certificates, that of the route with the shortest path counts.
func (w *Writer) enterHost(part *hostPart) {
	part.tables, part.certificate = map[string]map[string]string{httpTable: {}, httpsTable: {}, passthroughTable: {}}, ""
	rank := func(key model.ServiceAliasConfigKey) int { // routes for a path alone take it from those for what is below it too
		if claim.Exact(w.routes[key].alias.Annotations) {
			return 1
		}
		return 0
	}
	keys := slices.SortedFunc(maps.Keys(part.routes), func(a, b model.ServiceAliasConfigKey) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	for _, key := range keys {
		alias, name := w.routes[key].alias, w.routes[key].backend.Name
		switch alias.TLSTermination {
		case "":
			enter(part.tables[httpTable], alias, name)
		case routev1.TLSTerminationPassthrough:
			part.tables[passthroughTable][hostOf(alias)] = name
		default:
			enter(part.tables[httpsTable], alias, name)
			if host := hostOf(alias); part.tables[passthroughTable][host] == "" {
				part.tables[passthroughTable][host] = terminated // also where its domain passes
			}
			if alias.InsecureEdgeTerminationPolicy == routev1.InsecureEdgeTerminationPolicyAllow {
				enter(part.tables[httpTable], alias, name)
			}
		}
		if alias.InsecureEdgeTerminationPolicy == routev1.InsecureEdgeTerminationPolicyRedirect {
			enter(part.tables[httpTable], alias, redirect)
		}
		if before := w.routes[part.certificate]; ownCertificate(alias) && (before == nil || len(alias.Path) < len(before.alias.Path)) {
			part.certificate = key
		}
	}
}

// certificateLine is the file of a route's certificate, with what a client may speak.
func (w *Writer) certificateLine(key model.ServiceAliasConfigKey) string {
	line := filepath.Join(w.Dir, certificateFile(key))
	if w.Settings.On("ROUTER_ENABLE_HTTP2") {
		line += " [alpn h2,http/1.1]"
	}
	return line
}

// hostOf is the host of a route as requests are looked up: a wildcard has '*' in place of the first label.
func hostOf(alias *model.ServiceAliasConfig) string {
	if alias.IsWildcard {
		return "*." + claim.Domain(alias.Host)
	}
	return alias.Host
}

// enter puts a route into a table. The path of another route that ends with a slash keeps what is below it.
func enter(table map[string]string, alias *model.ServiceAliasConfig, value string) {
	key := hostOf(alias) + alias.Path
	switch {
	case claim.Exact(alias.Annotations) && alias.Path == "":
		table[key+"/?"] = value
	case claim.Exact(alias.Annotations):
		table[key+"?"] = value
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

// patched is a list in the order of names without what is gone, and with what has come, which is in that order too. Without a change it is the same list.
func patched[T any](list []T, name func(T) string, gone map[string]bool, come []T) []T {
	if len(gone) == 0 && len(come) == 0 {
		return list
	}
	made := make([]T, 0, len(list)+len(come))
	for _, item := range list {
		for len(come) > 0 && name(come[0]) < name(item) {
			made, come = append(made, come[0]), come[1:]
		}
		if !gone[name(item)] {
			made = append(made, item)
		}
	}
	return append(made, come...)
}
