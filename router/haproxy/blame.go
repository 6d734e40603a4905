package haproxy

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/router/model"
)

const (
	// blameTime bounds the search for the routes for which HAProxy refuses a configuration, and mostChecks how often it is asked.
	blameTime  = time.Minute
	mostChecks = 100
	// checkedFile and checkedListFile are what it is asked about.
	checkedFile     = "conf/checked.config"
	checkedListFile = "conf/checked.list"
)

// blame finds the routes for which HAProxy refuses a configuration: those that it names, or else those without which it takes the rest. There are none if the
// reason is another.
func (e *Engine) blame(ctx context.Context, config *Config, reason string) (routes []model.ServiceAliasConfigKey) {
	var all []model.ServiceAliasConfigKey
	for _, backend := range config.Backends {
		route := routeOf(backend)
		all = append(all, route)
		if strings.Contains(reason, ":"+string(route)+"'") || strings.Contains(reason, "/"+certificateFile(route)) || strings.Contains(reason, "/"+authoritiesFile(route)) {
			routes = append(routes, route)
		}
	}
	if len(routes) > 0 || config.whole != "" {
		return routes
	}
	ctx, cancel := context.WithTimeout(ctx, blameTime)
	defer cancel()
	search := search{engine: e, config: config}
	if !search.accepts(ctx, nil) {
		return nil
	}
	search.among(ctx, all)
	return search.found
}

// alike says whether another configuration has the same of a route as this one: what is blamed here is to blame there.
func (c *Config) alike(other *Config, route model.ServiceAliasConfigKey) bool {
	for _, name := range []string{certificateFile(route), authoritiesFile(route)} {
		if !bytes.Equal(c.Files[name], other.Files[name]) {
			return false
		}
	}
	of := func(b *Backend) bool { return routeOf(b) == route }
	here, there := slices.IndexFunc(c.Backends, of), slices.IndexFunc(other.Backends, of)
	return here >= 0 && there >= 0 && c.Backends[here].Shape == other.Backends[there].Shape
}

// routeOf is the route of a backend.
func routeOf(backend *Backend) model.ServiceAliasConfigKey {
	_, route, _ := strings.Cut(backend.Name, ":")
	return model.ServiceAliasConfigKey(route)
}

// search asks HAProxy about parts of a configuration.
type search struct {
	engine *Engine
	config *Config
	asked  int
	found  []model.ServiceAliasConfigKey
}

// among notes which of some routes HAProxy refuses.
func (s *search) among(ctx context.Context, routes []model.ServiceAliasConfigKey) {
	if len(routes) == 0 || s.asked >= mostChecks || s.accepts(ctx, routes) || ctx.Err() != nil {
		return
	}
	if len(routes) == 1 {
		s.found = append(s.found, routes[0])
		return
	}
	half := len(routes) / 2
	s.among(ctx, routes[:half])
	s.among(ctx, routes[half:])
}

// accepts asks whether HAProxy takes the configuration with these routes alone.
func (s *search) accepts(ctx context.Context, routes []model.ServiceAliasConfigKey) bool {
	s.asked++
	with, files := map[model.ServiceAliasConfigKey]bool{}, map[string]bool{}
	for _, route := range routes {
		with[route], files[filepath.Join(s.engine.Dir, certificateFile(route))] = true, true
	}
	part := *s.config
	part.Frame = strings.ReplaceAll(part.Frame, certificateListFile, checkedListFile)
	part.Backends = slices.DeleteFunc(slices.Clone(part.Backends), func(b *Backend) bool { return !with[routeOf(b)] })
	part.Certificates = slices.DeleteFunc(slices.Clone(part.Certificates), func(e Entry) bool { return !files[certificateOf(e)] })
	for name, content := range map[string][]byte{checkedFile: []byte(part.Text()), checkedListFile: part.certificateList()} {
		path := filepath.Join(s.engine.Dir, name)
		defer os.Remove(path)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return true // nothing can be said about them
		}
	}
	return exec.CommandContext(ctx, s.engine.Program, "-c", "-f", filepath.Join(s.engine.Dir, checkedFile)).Run() == nil
}
