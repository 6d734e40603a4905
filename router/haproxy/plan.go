package haproxy

import (
	"cmp"
	"maps"
	"path/filepath"
	"regexp"
	"time"
)

// plan contains the commands that change HAProxy from one configuration to another.
type plan struct {
	*served
	config *Config // the configuration that HAProxy serves after the plan
	steps  []step
	tables map[string][]Entry
	parked map[string]Server
	absent map[string]bool // backends that the process cannot serve
	moved  bool            // true if backends use different spare backends than before
	all    bool
}

// step contains the commands for one object, such as a backend, a table entry or a file.
type step struct {
	of       string
	commands []string
	undo     string // undoes the commands if HAProxy rejects one of them; optional
}

func (p *plan) say(of string, commands ...string) {
	if len(commands) > 0 {
		p.steps = append(p.steps, step{of: of, commands: commands})
	}
}

func (s *served) plan(config *Config) *plan {
	existing := *s.config
	p := &plan{served: s, config: &existing, parked: maps.Clone(s.parked), absent: map[string]bool{}, all: true, tables: s.tables}
	if s.config.Frame != config.Frame {
		p.all = false
	}
	last := p.certificates(config)
	p.backends(config)
	if p.moved || !sameTables(s.config.Tables, config.Tables) {
		p.changeTables(config)
	}
	p.steps = append(p.steps, last...)
	return p
}

// backends adds steps to the plan that change the backends. The backends are sorted by name in both
// configurations.
func (p *plan) backends(config *Config) {
	now, then := p.served.config.Backends, config.Backends
	serves := make([]*Backend, 0, len(then))
	for len(now) > 0 || len(then) > 0 {
		switch {
		case len(then) == 0 || len(now) > 0 && now[0].Name < then[0].Name:
			p.markChanged() // the backend receives no requests until the next reload removes it
			delete(p.places, now[0].Name)
			delete(p.damaged, now[0].Name)
			p.moved = true
			now = now[1:]
		case len(now) == 0 || then[0].Name < now[0].Name:
			if p.useSpare(then[0]) {
				serves = append(serves, then[0])
			} else {
				p.absent[then[0].Name] = true
			}
			then = then[1:]
		default:
			serves = append(serves, p.changeBackend(now[0], then[0]))
			now, then = now[1:], then[1:]
		}
	}
	p.config.Backends = serves
}

// markChanged records the time when the backends first differed from HAProxy's configuration file.
func (p *plan) markChanged() {
	if p.since.IsZero() {
		p.since = time.Now()
	}
}

// changeBackend adds steps to the plan that change a backend. It returns the resulting backend.
func (p *plan) changeBackend(now, then *Backend) *Backend {
	if p.damaged[now.Name] {
		p.all = false
		return now
	}
	if now == then {
		return then
	}
	if now.Shape != then.Shape || now.Key != then.Key {
		if p.useSpare(then) {
			return then
		}
		return now
	}
	commands, unused, possible := update(p.translate(now), p.translate(then), p.parked)
	if !possible {
		p.all = false
		return now
	}
	for _, server := range then.Servers {
		delete(p.parked, p.translate(then).Name+"/"+server.Name)
	}
	maps.Copy(p.parked, unused)
	p.say(then.Name, commands...)
	return then
}

// translate returns a copy of a backend with the name that the backend has in this process.
func (s *served) translate(backend *Backend) Backend {
	here := *backend
	if place := s.places[backend.Name]; place != "" {
		here.Name = place
	}
	return here
}

// useSpare adds steps to the plan that make a spare backend serve a backend's requests. It returns
// false if no spare backend is available.
func (p *plan) useSpare(backend *Backend) bool {
	p.requested[backend.Name] = backend.Shape
	free := p.spares[backend.Shape]
	if len(free) == 0 {
		p.all = false
		return false
	}
	p.spares[backend.Shape] = free[1:]
	p.places[backend.Name] = free[0]
	p.markChanged()
	p.moved = true
	here := p.translate(backend)
	p.say(backend.Name, p.take(here.Name, backend)...)
	for _, server := range here.Servers {
		p.say(backend.Name, add(here, server)...)
	}
	return true
}

// changeTables adds steps to the plan that change the tables. It omits entries for backends that
// the process cannot serve.
func (p *plan) changeTables(config *Config) {
	p.tables, p.config.Tables = map[string][]Entry{}, config.Tables
	for table, entries := range config.Tables {
		desired := make([]Entry, 0, len(entries))
		for _, entry := range entries {
			if p.absent[entry.Value] {
				continue
			}
			if place := p.places[entry.Value]; place != "" {
				entry.Value = place
			}
			desired = append(desired, entry)
		}
		has, possible := p.changeTable(filepath.Join(p.dir, table), p.served.tables[table], desired)
		if !possible {
			p.all, p.config.Tables = false, nil
		}
		p.tables[table] = has
	}
}

// plain matches keys that contain no characters with a special meaning in commands.
var plain = regexp.MustCompile(`^[A-Za-z0-9._~/?*%+@:,=&!$()-]+$`)

// changeTable adds steps to the plan that update a table to the new entries, which are sorted by
// key. has contains the resulting entries. If a command cannot contain a key, the key's entry
// remains unchanged and possible is false.
func (p *plan) changeTable(file string, now, then []Entry) (has []Entry, possible bool) {
	possible = true
	has = make([]Entry, 0, len(then))
	for len(now) > 0 || len(then) > 0 {
		var before, after *Entry
		if len(now) > 0 && (len(then) == 0 || now[0].Key <= then[0].Key) {
			before = &now[0]
		}
		if len(then) > 0 && (len(now) == 0 || then[0].Key <= now[0].Key) {
			after, then = &then[0], then[1:]
		}
		if before != nil {
			now = now[1:]
		}
		key := cmp.Or(before, after).Key
		of := file + " " + key
		switch {
		case before != nil && after != nil && *before == *after:
		case !plain.MatchString(key), p.damaged[of]:
			possible, after = false, before
		case after == nil:
			p.say(of, "del map "+of)
		case before == nil:
			p.say(of, "add map "+of+" "+after.Value)
		default:
			p.say(of, "set map "+of+" "+after.Value)
		}
		if after != nil {
			has = append(has, *after)
		}
	}
	return has, possible
}
