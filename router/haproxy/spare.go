package haproxy

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Spare backends serve new routes without a reload. They are necessary because servers and table
// entries can be added through the runtime interface, but backends cannot. If a spare backend has
// the same shape as a route's backend, the spare backend serves the route until the next reload. In
// statistics, it has the name of the route's own backend. Its cookie also has that name, so that
// clients stay with their pods.
const (
	// minSpares and maxSpares are the minimum and maximum number of spare backends for each common
	// shape. The minimum increases to 1/sparesShare of all backends, because a reload takes longer
	// if there are many backends.
	minSpares   = 32
	sparesShare = 50
	maxSpares   = 512
	// sparesAhead is the number of spare backends in the next configuration for each spare backend
	// that has been used since the last reload.
	sparesAhead = 4
	sparePrefix = "spare:"
)

// spare returns the spare backends for the next configuration: their names, keyed by shape, and
// their text.
func (r *running) spare(config *Config, dir string) (names map[string][]string, text string) {
	demand := map[string]int{}
	if r.served != nil {
		for shape, usage := range r.served.demand() {
			demand[shape] = usage * sparesAhead
		}
	}
	for shape, before := range r.demand { // past demand is likely to continue
		demand[shape] = max(demand[shape], before/2)
	}
	for _, shape := range config.Shapes {
		demand[shape] = max(demand[shape], minSpares, len(config.Backends)/sparesShare)
	}
	names, r.demand = map[string][]string{}, map[string]int{}
	var result strings.Builder
	count := 0
	for shape, desired := range demand {
		if desired = min(desired, maxSpares); desired < sparesAhead {
			continue
		}
		r.demand[shape] = desired
		for range desired {
			count++
			backend := Backend{Name: fmt.Sprint(sparePrefix, count), Shape: shape, Key: fmt.Sprintf("spare%d", count)}
			backend.write(&result)
			if backend.namesCookie() {
				result.WriteString(renameCookie(backend, filepath.Join(dir, spareTable)))
			}
			names[shape] = append(names[shape], backend.Name)
		}
	}
	return names, result.String()
}

// spareTable is the table that maps spare backends to the external names of their cookies.
const spareTable = "conf/spares.map"

// namesCookie reports whether the name of the backend's cookie is the backend's key.
func (b *Backend) namesCookie() bool { return strings.Contains(b.Shape, "\n  cookie "+keyMark+" ") }

// renameCookie returns the rules that translate between the internal and the external name of a
// spare backend's cookie. A regular expression can refer to an earlier match but not to a variable.
// Therefore, the rules temporarily insert the name before the cookies in the header.
func renameCookie(spare Backend, table string) string {
	const one = " if { var(txn.cookie) -m found } { req.fhdr_cnt(Cookie) eq 1 }\n"
	return "  http-request set-var(txn.cookie) str(" + spare.Name + "),map_str(" + table + ")\n" +
		"  http-request set-header Cookie '%[var(txn.cookie)] %[req.fhdr(Cookie)]'" + one +
		`  http-request replace-header Cookie '^(\S+) (.*; ?|)\1=(.*)$' '\2` + spare.Key + `=\3'` + one +
		"  http-request replace-header Cookie '^[0-9a-f]{32} (.*)$' '\\1'" + one +
		"  http-after-response replace-header Set-Cookie '^" + spare.Key + "=(.*)$' '%[var(txn.cookie)]=\\1' if { var(txn.cookie) -m found }\n"
}

// take returns the commands that set a spare backend's cookie name to the cookie name of the
// backend that it serves.
func (p *plan) take(spare string, backend *Backend) (commands []string) {
	if !backend.Cookie {
		return nil
	}
	commands = []string{"set dynamic-cookie-key backend " + spare + " " + backend.Key}
	if backend.namesCookie() {
		commands = append(commands, "add map "+filepath.Join(p.dir, spareTable)+" "+spare+" "+backend.Key)
	}
	return commands
}

// named replaces the names of spare backends in statistics, which are in CSV format, with the names
// of the backends that they serve. It omits free spare backends.
func named(stats string, places map[string]string) string {
	backends := make(map[string]string, len(places))
	for backend, spare := range places {
		backends[spare] = backend
	}
	var text strings.Builder
	for line := range strings.Lines(stats) {
		name, rest, row := strings.Cut(line, ",")
		if !row {
			continue
		}
		if strings.HasPrefix(name, sparePrefix) {
			if name = backends[name]; name == "" {
				continue
			}
		} else if places[name] != "" {
			continue // the row of the original backend, which a spare backend replaces
		}
		text.WriteString(name + "," + rest)
	}
	return text.String()
}
