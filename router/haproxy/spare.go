package haproxy

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Spare backends are for routes that come: HAProxy can be told of servers and of entries of tables while it runs, but not of backends. A route whose backend
// has the shape of a spare one is served by that at once, until the next reload. Its statistics have the name of the route's own backend, and so has the cookie, so that
// clients stay with their pods.
const (
	// leastSpares are there of each usual shape, and besides these a share of all backends, since a reload takes longer among many.
	leastSpares = 32
	sparesShare = 50
	mostSpares  = 512
	// sparesAhead is by how much more there are next time than were used.
	sparesAhead = 4
	sparePrefix = "spare:"
)

// spare makes the spare backends of the next configuration: their names by shape, and their text.
func (r *running) spare(config *Config, dir string) (names map[string][]string, text string) {
	demand := map[string]int{}
	if r.served != nil {
		for shape, used := range r.served.demand() {
			demand[shape] = used * sparesAhead
		}
	}
	for shape, before := range r.demand { // what was needed once will be for a while
		demand[shape] = max(demand[shape], before/2)
	}
	for _, shape := range config.Shapes {
		demand[shape] = max(demand[shape], leastSpares, len(config.Backends)/sparesShare)
	}
	names, r.demand = map[string][]string{}, map[string]int{}
	var made strings.Builder
	count := 0
	for shape, wanted := range demand {
		if wanted = min(wanted, mostSpares); wanted < sparesAhead {
			continue
		}
		r.demand[shape] = wanted
		for range wanted {
			count++
			backend := Backend{Name: fmt.Sprint(sparePrefix, count), Shape: shape, Key: fmt.Sprintf("spare%d", count)}
			backend.write(&made)
			if backend.namesCookie() {
				made.WriteString(renameCookie(backend, filepath.Join(dir, spareTable)))
			}
			names[shape] = append(names[shape], backend.Name)
		}
	}
	return names, made.String()
}

// spareTable leads from spare backends to the names that their cookies have outside of them.
const spareTable = "conf/spares.map"

// namesCookie says whether the name of a backend's cookie is its key.
func (b *Backend) namesCookie() bool { return strings.Contains(b.Shape, "\n  cookie "+keyMark+" ") }

// renameCookie are the rules by which the cookie of a spare backend has another name outside of it. A regular expression cannot hold a variable, but what it has
// found before: the name stands in front of the cookies for a moment.
func renameCookie(spare Backend, table string) string {
	const one = " if { var(txn.cookie) -m found } { req.fhdr_cnt(Cookie) eq 1 }\n"
	return "  http-request set-var(txn.cookie) str(" + spare.Name + "),map_str(" + table + ")\n" +
		"  http-request set-header Cookie '%[var(txn.cookie)] %[req.fhdr(Cookie)]'" + one +
		`  http-request replace-header Cookie '^(\S+) (.*; ?|)\1=(.*)$' '\2` + spare.Key + `=\3'` + one +
		"  http-request replace-header Cookie '^[0-9a-f]{32} (.*)$' '\\1'" + one +
		"  http-after-response replace-header Set-Cookie '^" + spare.Key + "=(.*)$' '%[var(txn.cookie)]=\\1' if { var(txn.cookie) -m found }\n"
}

// take are the commands that give a spare backend, under its name here, the cookie of the one that it stands for.
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

// named are statistics, as CSV, with the names of backends in place of those of the spare ones that they are in. Spare ones that are free are left out.
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
			continue // it was that until it was changed
		}
		text.WriteString(name + "," + rest)
	}
	return text.String()
}
