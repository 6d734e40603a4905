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

// redirect is the value in the HTTP table for redirects to HTTPS.
const redirect = "redirect"

// terminated is the value in the SNI table for hosts whose TLS connections the router terminates.
const terminated = "to_sni"

// These tables map requests to backends. A key consists of a host and a path prefix. The longest
// match applies. The cost of a lookup does not depend on the number of routes. For a lookup, '?' is
// appended to the request's path. A route with the path /test has the keys "/test?" and "/test/",
// so it does not match /testing.
const (
	httpTable        = "conf/http.map"
	httpsTable       = "conf/https.map"
	passthroughTable = "conf/passthrough.map"
)

// hostPart contains the table entries for the routes of one host.
type hostPart struct {
	routes      map[model.ServiceAliasConfigKey]bool
	tables      map[string]map[string]string
	certificate model.ServiceAliasConfigKey // the route whose certificate applies
}

// join adds a route to a host and marks the host as changed.
func (w *Writer) join(key model.ServiceAliasConfigKey, host string, changed map[string]bool) {
	changed[host] = true
	if w.hosts[host] == nil {
		w.hosts[host] = &hostPart{routes: map[model.ServiceAliasConfigKey]bool{}}
	}
	w.hosts[host].routes[key] = true
}

// leave removes a route from a host and marks the host as changed.
func (w *Writer) leave(key model.ServiceAliasConfigKey, host string, changed map[string]bool) {
	changed[host] = true
	delete(w.hosts[host].routes, key)
}

// changeTables updates the tables for the changed hosts.
func (w *Writer) changeTables(next *Config, hosts map[string]bool) {
	removed, added := map[string]map[string]bool{}, map[string][]Entry{}
	var certificates []Entry
	for table := range next.Tables {
		removed[table] = map[string]bool{}
	}
	for host := range hosts {
		part := w.hosts[host]
		for table, entries := range part.tables {
			for key := range entries {
				removed[table][key] = true
			}
		}
		w.enterHost(part)
		for table, entries := range part.tables {
			for key, value := range entries {
				added[table] = append(added[table], Entry{key, value})
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
		next.Tables[table] = patchedEntries(entries, removed[table], added[table])
	}
	next.Certificates = patchedEntries(next.Certificates, hosts, certificates)
}

func patchedEntries(entries []Entry, removed map[string]bool, added []Entry) []Entry {
	slices.SortFunc(added, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return patched(entries, func(e Entry) string { return e.Key }, removed, added)
}

// enterHost rebuilds a host's entries. If several routes have a certificate, the certificate of the
// route with the shortest path is used.
func (w *Writer) enterHost(part *hostPart) {
	part.tables, part.certificate = map[string]map[string]string{httpTable: {}, httpsTable: {}, passthroughTable: {}}, ""
	rank := func(key model.ServiceAliasConfigKey) int { // exact paths override prefixes
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
				part.tables[passthroughTable][host] = terminated // even if a wildcard passes TLS through
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

// certificateLine returns the path of a route's certificate file, followed by its ALPN protocols.
func (w *Writer) certificateLine(key model.ServiceAliasConfigKey) string {
	line := filepath.Join(w.Dir, certificateFile(key))
	if w.Settings.On("ROUTER_ENABLE_HTTP2") {
		line += " [alpn h2,http/1.1]"
	}
	return line
}

// hostOf returns a route's host in the form that lookups use. For a wildcard, '*' replaces the
// first label.
func hostOf(alias *model.ServiceAliasConfig) string {
	if alias.IsWildcard {
		return "*." + claim.Domain(alias.Host)
	}
	return alias.Host
}

// enter adds a route to a table. A route for /test does not replace the entry of a route for
// /test/, which is more specific.
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
		if _, ok := table[key+"/"]; !ok {
			table[key+"/"] = value
		}
	}
}

// patched returns a list without the removed items and with the added items. list and added are
// sorted by name. If nothing changes, patched returns the same list.
func patched[T any](list []T, name func(T) string, removed map[string]bool, added []T) []T {
	if len(removed) == 0 && len(added) == 0 {
		return list
	}
	entries := make([]T, 0, len(list)+len(added))
	for _, entry := range list {
		for len(added) > 0 && name(added[0]) < name(entry) {
			entries, added = append(entries, added[0]), added[1:]
		}
		if !removed[name(entry)] {
			entries = append(entries, entry)
		}
	}
	return append(entries, added...)
}
