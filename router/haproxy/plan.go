package haproxy

import (
	"cmp"
	"maps"
	"path/filepath"
	"regexp"
	"time"
)

// plan is what HAProxy is told to come from one configuration to another.
type plan struct {
	*served
	config *Config // that it serves then
	steps  []step
	tables map[string][]Entry
	parked map[string]Server
	absent map[string]bool // backends that it cannot serve
	moved  bool            // backends have other places than before
	all    bool
}

// step is what HAProxy is told about one thing: a backend, an entry of a table, a file.
type step struct {
	of       string
	commands []string
	undo     string // what it is told when it refuses one of them; nothing by default
}

func (p *plan) say(of string, commands ...string) {
	if len(commands) > 0 {
		p.steps = append(p.steps, step{of: of, commands: commands})
	}
}

func (s *served) plan(config *Config) *plan {
	known := *s.config
	p := &plan{served: s, config: &known, parked: maps.Clone(s.parked), absent: map[string]bool{}, all: true, tables: s.tables}
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

// backends goes through those of both configurations, which are in the order of their names.
func (p *plan) backends(config *Config) {
	now, then := p.served.config.Backends, config.Backends
	serves := make([]*Backend, 0, len(then))
	for len(now) > 0 || len(then) > 0 {
		switch {
		case len(then) == 0 || len(now) > 0 && now[0].Name < then[0].Name:
			p.note() // it is gone, and stays without requests until the next reload
			delete(p.places, now[0].Name)
			delete(p.damaged, now[0].Name)
			p.moved = true
			now = now[1:]
		case len(now) == 0 || then[0].Name < now[0].Name:
			if p.settle(then[0]) {
				serves = append(serves, then[0])
			} else {
				p.absent[then[0].Name] = true
			}
			then = then[1:]
		default:
			serves = append(serves, p.follow(now[0], then[0]))
			now, then = now[1:], then[1:]
		}
	}
	p.config.Backends = serves
}

// note remembers since when backends are others than those that were read.
func (p *plan) note() {
	if p.since.IsZero() {
		p.since = time.Now()
	}
}

// follow brings a backend to another state, and returns the one that it has then.
func (p *plan) follow(now, then *Backend) *Backend {
	if p.damaged[now.Name] {
		p.all = false
		return now
	}
	if now == then {
		return then
	}
	if now.Shape != then.Shape || now.Key != then.Key {
		if p.settle(then) {
			return then
		}
		return now
	}
	commands, left, possible := update(p.placed(now), p.placed(then), p.parked)
	if !possible {
		p.all = false
		return now
	}
	for _, server := range then.Servers {
		delete(p.parked, p.placed(then).Name+"/"+server.Name)
	}
	maps.Copy(p.parked, left)
	p.say(then.Name, commands...)
	return then
}

// placed is a backend under the name that it has here.
func (s *served) placed(backend *Backend) Backend {
	here := *backend
	if place := s.places[backend.Name]; place != "" {
		here.Name = place
	}
	return here
}

// settle puts a backend into a spare one, if there is one.
func (p *plan) settle(backend *Backend) bool {
	p.asked[backend.Name] = backend.Shape
	free := p.spares[backend.Shape]
	if len(free) == 0 {
		p.all = false
		return false
	}
	p.spares[backend.Shape] = free[1:]
	p.places[backend.Name] = free[0]
	p.note()
	p.moved = true
	here := p.placed(backend)
	p.say(backend.Name, p.take(here.Name, backend)...)
	for _, server := range here.Servers {
		p.say(backend.Name, add(here, server)...)
	}
	return true
}

// changeTables tells HAProxy what is different in the tables. Entries of backends that it cannot serve wait for them.
func (p *plan) changeTables(config *Config) {
	p.tables, p.config.Tables = map[string][]Entry{}, config.Tables
	for table, entries := range config.Tables {
		wanted := make([]Entry, 0, len(entries))
		for _, entry := range entries {
			if p.absent[entry.Value] {
				continue
			}
			if place := p.places[entry.Value]; place != "" {
				entry.Value = place
			}
			wanted = append(wanted, entry)
		}
		has, possible := p.changeTable(filepath.Join(p.dir, table), p.served.tables[table], wanted)
		if !possible {
			p.all, p.config.Tables = false, nil
		}
		p.tables[table] = has
	}
}

// plain are keys of tables that mean nothing else in a command.
var plain = regexp.MustCompile(`^[A-Za-z0-9._~/?*%+@:,=&!$()-]+$`)

// changeTable brings a table, whose entries are in the order of their keys, to other entries. has is what it has then: entries whose key cannot stand in a
// command stay as they are, and make possible false.
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
