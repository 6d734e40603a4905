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
	// blameTimeout is the timeout for the search for rejected routes. maxChecks is the maximum
	// number of HAProxy configuration checks in a search.
	blameTimeout = time.Minute
	maxChecks    = 100
	// checkedFile and checkedListFile are the input files for HAProxy configuration checks.
	checkedFile     = "conf/checked.config"
	checkedListFile = "conf/checked.list"
)

// findRejected returns the routes that cause HAProxy to reject a configuration. reason is HAProxy's
// output. If reason contains the names of routes, findRejected returns these routes. Otherwise, it
// searches for the routes whose removal makes HAProxy accept the configuration. If the cause is not
// a route, findRejected returns no routes.
func (e *Engine) findRejected(ctx context.Context, config *Config,
	reason string) (routes []model.ServiceAliasConfigKey) {
	var all []model.ServiceAliasConfigKey
	for _, backend := range config.Backends {
		route := routeOf(backend)
		all = append(all, route)
		if strings.Contains(reason, ":"+string(route)+"'") ||
			strings.Contains(reason, "/"+certificateFile(route)) ||
			strings.Contains(reason, "/"+authoritiesFile(route)) {
			routes = append(routes, route)
		}
	}
	if len(routes) > 0 || config.whole != "" {
		return routes
	}
	ctx, cancel := context.WithTimeout(ctx, blameTimeout)
	defer cancel()
	search := search{engine: e, config: config}
	if !search.accepts(ctx, nil) {
		return nil
	}
	search.among(ctx, all)
	return search.rejected
}

// alike reports whether a route has the same configuration in both Configs. If so, HAProxy either
// rejects the route in both or accepts it in both.
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

// routeOf returns the route that a backend serves.
func routeOf(backend *Backend) model.ServiceAliasConfigKey {
	_, route, _ := strings.Cut(backend.Name, ":")
	return model.ServiceAliasConfigKey(route)
}

// search checks parts of a configuration with HAProxy.
type search struct {
	engine   *Engine
	config   *Config
	checks   int
	rejected []model.ServiceAliasConfigKey
}

// among finds the rejected routes in a list by bisection.
func (s *search) among(ctx context.Context, routes []model.ServiceAliasConfigKey) {
	if len(routes) == 0 || s.checks >= maxChecks || s.accepts(ctx, routes) || ctx.Err() != nil {
		return
	}
	if len(routes) == 1 {
		s.rejected = append(s.rejected, routes[0])
		return
	}
	half := len(routes) / 2
	s.among(ctx, routes[:half])
	s.among(ctx, routes[half:])
}

// accepts reports whether HAProxy accepts the configuration with only these routes.
func (s *search) accepts(ctx context.Context, routes []model.ServiceAliasConfigKey) bool {
	s.checks++
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
			return true // if HAProxy cannot check the routes, exclude none of them
		}
	}
	return exec.CommandContext(ctx, s.engine.Program, "-c", "-f", filepath.Join(s.engine.Dir, checkedFile)).Run() == nil
}
