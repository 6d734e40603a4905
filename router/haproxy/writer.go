package haproxy

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"text/template"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/certificate"
	"github.com/slipway-platform/slipway/router/environment"
	"github.com/slipway-platform/slipway/router/model"
)

//go:embed frame.cfg.tmpl
var frameTemplate string

//go:embed backend.cfg.tmpl
var backendTemplate string

// Writer creates the configurations for a changing state. After the first Write, only
// DefaultCertificate may be changed.
type Writer struct {
	// Dir is the absolute path of the working directory.
	Dir string
	// Settings contains the router's environment variables.
	Settings environment.Settings
	// User is the account that HAProxy switches to. It is optional.
	User string
	// DefaultCertificate is the certificate, with its key, for routes without their own
	// certificate.
	DefaultCertificate []byte
	// ServiceCA is the path to the service CA file. Each Write reads the file. If ServiceCA is
	// empty or the file does not exist, the pods of re-encrypt routes without a
	// destinationCACertificate are not verified. If the file is invalid, the previous CA
	// certificates are used. If there are no previous CA certificates, no pod is trusted.
	ServiceCA string

	backend *template.Template
	shapes  map[string]string // interned shapes, which backends share
	last    *Config           // the previous configuration; nil at first
	bound   bool              // true if last opens the ports
	trusted []byte            // the last valid service CAs
	routes  map[model.ServiceAliasConfigKey]*part
	hosts   map[string]*hostPart
}

// part is a route's part of the configuration.
type part struct {
	alias   *model.ServiceAliasConfig
	backend *Backend
	files   map[string][]byte
}

const (
	defaultCertificateFile = "conf/default.pem"
	serviceCAFile          = "conf/service-ca.pem"
	certificateListFile    = "conf/certificates.list"
	certificatesDir        = "router/certs/"
	authoritiesDir         = "router/cacerts/"
)

// Write returns the configuration for a state. changed lists the routes that have changed since the
// previous call. If changed is nil, all routes have changed. bind determines whether HAProxy opens
// its ports.
func (w *Writer) Write(state *model.State, changed []model.ServiceAliasConfigKey,
	bind bool) (*Config, error) {
	authorities, err := w.serviceCA()
	if err != nil {
		return nil, err
	}
	custom := w.Settings.Text("TEMPLATE_FILE")
	if w.last == nil || changed == nil || custom != "" || !bytes.Equal(authorities, w.last.Files[serviceCAFile]) {
		if err := w.begin(authorities); err != nil {
			return nil, err
		}
		changed = slices.Collect(maps.Keys(state.Aliases))
	}
	next, err := w.change(state, changed)
	if err != nil {
		w.last = nil // the cached routes do not match any configuration
		return nil, err
	}
	if !bytes.Equal(w.DefaultCertificate, next.Files[defaultCertificateFile]) {
		next.Files = maps.Clone(next.Files)
		next.Files[defaultCertificateFile] = w.DefaultCertificate
	}
	if custom != "" {
		return next, w.custom(custom, state, bind, next)
	}
	if next.Frame == "" || bind != w.bound {
		if next.Frame, err = w.frame(bind); err != nil {
			return nil, err
		}
		w.bound = bind
	}
	w.last = next
	return next, nil
}

// begin drops all cached routes.
func (w *Writer) begin(authorities []byte) error {
	w.last = &Config{Files: map[string][]byte{
		defaultCertificateFile: w.DefaultCertificate, "conf/error-page-503.http": []byte(page503), "conf/unknown.html": []byte(pageUnknown),
	}}
	if authorities != nil {
		w.last.Files[serviceCAFile] = authorities
	}
	w.last.Tables = map[string][]Entry{httpTable: nil, httpsTable: nil, passthroughTable: nil}
	w.routes, w.hosts, w.shapes = map[model.ServiceAliasConfigKey]*part{}, map[string]*hostPart{}, map[string]string{}
	for _, usual := range []model.ServiceAliasConfig{
		{}, {TLSTermination: routev1.TLSTerminationEdge}, {TLSTermination: routev1.TLSTerminationPassthrough},
	} {
		shape, err := w.shape(&usual)
		if err != nil {
			return err
		}
		w.last.Shapes = append(w.last.Shapes, shape)
	}
	return nil
}

// change returns a configuration in which only the changed routes differ from the previous
// configuration.
func (w *Writer) change(state *model.State,
	changed []model.ServiceAliasConfigKey) (*Config, error) {
	next, removed, hosts, files := *w.last, map[string]bool{}, map[string]bool{}, false
	var added []*Backend
	slices.Sort(changed)
	for _, key := range slices.Compact(changed) {
		before, alias := w.routes[key], state.Aliases[key]
		part, err := w.part(key, alias, before, state)
		if err != nil {
			return nil, err
		}
		if before != nil {
			removed[before.backend.Name] = true
			delete(w.routes, key)
		}
		if part != nil {
			added = append(added, part.backend)
			w.routes[key] = part
		}
		if before != nil && part != nil && before.alias.SameApartFromEndpoints(alias) {
			continue
		}
		if before != nil {
			w.leave(key, hostOf(before.alias), hosts)
			files = files || len(before.files) > 0
		}
		if part != nil {
			w.join(key, hostOf(alias), hosts)
			files = files || len(part.files) > 0
		}
	}
	slices.SortFunc(added, func(a, b *Backend) int { return strings.Compare(a.Name, b.Name) })
	next.Backends = patched(next.Backends, func(b *Backend) string { return b.Name }, removed, added)
	if len(hosts) > 0 {
		w.changeTables(&next, hosts)
	}
	if files {
		w.changeFiles(&next, changed)
	}
	if len(w.shapes) > 2*(len(w.routes)+len(next.Shapes)) {
		w.dropUnusedShapes()
	}
	return &next, nil
}

// dropUnusedShapes removes unused shapes. Otherwise, the number of shapes could grow without limit
// as routes are edited.
func (w *Writer) dropUnusedShapes() {
	w.shapes = map[string]string{}
	for _, shape := range w.last.Shapes {
		w.shapes[shape] = shape
	}
	for _, part := range w.routes {
		w.shapes[part.backend.Shape] = part.backend.Shape
	}
}

// part returns a route's part of the configuration, or nil for a deleted route.
func (w *Writer) part(key model.ServiceAliasConfigKey, alias *model.ServiceAliasConfig,
	before *part, state *model.State) (next *part, err error) {
	if alias == nil {
		return nil, nil
	}
	next = &part{alias: alias, backend: &Backend{Name: backendName(key, alias), Key: alias.RoutingKeyName}}
	if before != nil && before.alias.SameApartFromEndpoints(alias) {
		next.backend.Shape, next.files = before.backend.Shape, before.files
	} else {
		if next.backend.Shape, err = w.shape(alias); err != nil {
			return nil, fmt.Errorf("write backend of route %q: %w", key, err)
		}
		if next.files, err = certificates(key, alias); err != nil {
			return nil, err
		}
	}
	next.backend.Cookie = strings.Contains(next.backend.Shape, "\n  cookie ")
	next.backend.Servers = w.servers(key, alias, state, w.last.Files[serviceCAFile] != nil)
	return next, nil
}

// shape returns the text of a route's backend without its servers.
func (w *Writer) shape(alias *model.ServiceAliasConfig) (string, error) {
	if w.backend == nil {
		parsed, err := template.New("backend").Funcs(functions(w.Settings)).Parse(backendTemplate)
		if err != nil {
			return "", fmt.Errorf("parse template: %w", err)
		}
		w.backend = parsed
	}
	backend := *alias
	backend.RoutingKeyName = keyMark
	var text bytes.Buffer
	if err := w.backend.Execute(&text, &backend); err != nil {
		return "", err
	}
	expected, ok := w.shapes[text.String()]
	if !ok {
		expected = text.String()
		w.shapes[expected] = expected
	}
	return expected, nil
}

// changeFiles updates the files for changed routes.
func (w *Writer) changeFiles(next *Config, changed []model.ServiceAliasConfigKey) {
	next.Files = maps.Clone(next.Files)
	for _, key := range changed {
		delete(next.Files, certificateFile(key))
		delete(next.Files, authoritiesFile(key))
		if part := w.routes[key]; part != nil {
			maps.Copy(next.Files, part.files)
		}
	}
}

// certificates returns the files that contain a route's certificates.
func certificates(key model.ServiceAliasConfigKey,
	alias *model.ServiceAliasConfig) (files map[string][]byte, err error) {
	files = map[string][]byte{}
	if pair := alias.Certificates[alias.Host]; pair.Contents != "" && ownCertificate(alias) {
		config := &routev1.TLSConfig{Certificate: pair.Contents, Key: pair.PrivateKey, CACertificate: alias.Certificates[alias.Host+"_ca"].Contents}
		if files[certificateFile(key)], err = certificate.Bundle(config); err != nil {
			return nil, fmt.Errorf("bundle certificate of route %q: %w", key, err)
		}
	}
	if pods := alias.Certificates[alias.Host+"_pod"]; pods.Contents != "" {
		if files[authoritiesFile(key)], err = certificate.Authorities(pods.Contents); err != nil {
			return nil, fmt.Errorf("parse destination certificate of route %q: %w", key, err)
		}
	}
	return files, nil
}

// serviceCA returns the service CA certificates, or nil if there are none.
func (w *Writer) serviceCA() ([]byte, error) {
	if w.ServiceCA == "" {
		return nil, nil
	}
	content, err := os.ReadFile(w.ServiceCA)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		content, err = certificate.Authorities(string(content))
	}
	if err == nil {
		w.trusted = content
	} else if w.trusted == nil {
		if w.trusted, err = certificate.Nobody(); err != nil {
			return nil, fmt.Errorf("create a substitute for the service CAs, which cannot be read: %w", err)
		}
	}
	return w.trusted, nil
}

func ownCertificate(alias *model.ServiceAliasConfig) bool {
	return alias.Certificates[alias.Host].Contents != "" && alias.TLSTermination != routev1.TLSTerminationPassthrough
}

// certificateFile returns the path to a route's certificate file. It contains no colon, because
// HAProxy commands cannot contain file names with a colon.
func certificateFile(key model.ServiceAliasConfigKey) string {
	return certificatesDir + strings.ReplaceAll(string(key), ":", "_") + ".pem"
}

// authoritiesFile returns the path to the file that contains the CA certificates for a route's
// pods. The path is the same as in OpenShift.
func authoritiesFile(key model.ServiceAliasConfigKey) string {
	return authoritiesDir + string(key) + ".pem"
}
