package haproxy

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"text/template"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/certificate"
	"github.com/slipway-platform/slipway/router/model"
	"github.com/slipway-platform/slipway/router/settings"
)

//go:embed frame.cfg.tmpl
var frameTemplate string

//go:embed backend.cfg.tmpl
var backendTemplate string

// Config is a configuration: what HAProxy must read anew to change, and servers, which it is told of while it runs.
type Config struct {
	// Frame is the text above the backends.
	Frame string
	// Backends are in the order of their names.
	Backends []Backend
	// Files are the further files by path below the working directory: maps, certificates, pages.
	Files map[string][]byte
	// whole, if set, is the configuration made by a custom template, in place of frame and backends.
	whole string
}

// Backend is a backend: its text, and its servers.
type Backend struct {
	Name, Text string
	Servers    []Server
	// Cookie says that clients stay with a server by a cookie.
	Cookie bool
}

// Server is a server of a backend. Checked says that it is checked; a lone server is not, since there is no other to turn to.
type Server struct {
	Name, IP, Port string
	Weight         int32
	Options        string
	Checked        bool
}

// Writer makes configurations, one after the other. Its fields stay as they are after the first.
type Writer struct {
	// Dir is the working directory, absolute.
	Dir string
	// Settings are the router's variables.
	Settings settings.Settings
	// User is the account that HAProxy changes to; empty for none.
	User string
	// DefaultCertificate is what routes without a certificate have, with its key.
	DefaultCertificate []byte
	// ServiceCA is the file of the authorities of services' certificates, which is read anew for each configuration. Where it is empty or not there,
	// pods of re-encrypt routes without a destinationCACertificate are not checked.
	ServiceCA string

	backend *template.Template
	texts   map[model.ServiceAliasConfigKey]written // of the configuration before
}

// written is the text of a backend, with what it was made of.
type written struct {
	alias model.ServiceAliasConfig
	text  string
}

const (
	defaultCertificateFile = "conf/default.pem"
	serviceCAFile          = "conf/service-ca.pem"
)

// Write makes the configuration of a state. bind says whether the ports are opened.
func (w *Writer) Write(state *model.State, bind bool) (*Config, error) {
	config := &Config{Files: map[string][]byte{
		defaultCertificateFile: w.DefaultCertificate, "conf/error-page-503.http": []byte(page503), "conf/unknown.html": []byte(pageUnknown),
	}}
	for path, content := range tables(state, w.Dir, w.Settings) {
		config.Files[path] = content
	}
	if err := w.certificates(state, config.Files); err != nil {
		return nil, err
	}
	if err := w.serviceCA(config.Files); err != nil {
		return nil, err
	}
	if file := w.Settings.Text("TEMPLATE_FILE"); file != "" {
		return config, w.custom(file, state, bind, config)
	}
	frame, err := w.frame(bind)
	if err != nil {
		return nil, err
	}
	config.Frame = frame
	texts := make(map[model.ServiceAliasConfigKey]written, len(state.Aliases))
	for _, key := range slices.Sorted(maps.Keys(state.Aliases)) {
		alias := state.Aliases[key]
		text, err := w.text(key, alias)
		if err != nil {
			return nil, err
		}
		texts[key] = written{alias, text}
		config.Backends = append(config.Backends, Backend{
			Name: backendName(key, alias), Text: text, Servers: w.servers(key, alias, state, config.Files[serviceCAFile] != nil), Cookie: strings.Contains(text, "\n  cookie "),
		})
	}
	w.texts = texts
	slices.SortFunc(config.Backends, func(a, b Backend) int { return strings.Compare(a.Name, b.Name) })
	return config, nil
}

// text is the text of a route's backend above its servers. It is made anew only when the route has changed.
func (w *Writer) text(key model.ServiceAliasConfigKey, alias model.ServiceAliasConfig) (string, error) {
	if before, known := w.texts[key]; known && reflect.DeepEqual(before.alias, alias) {
		return before.text, nil
	}
	if w.backend == nil {
		parsed, err := template.New("backend").Funcs(functions(w.Settings)).Parse(backendTemplate)
		if err != nil {
			return "", fmt.Errorf("read template: %w", err)
		}
		w.backend = parsed
	}
	var text bytes.Buffer
	name := backendName(key, alias)
	if err := w.backend.Execute(&text, struct {
		Name   string
		Config model.ServiceAliasConfig
	}{name, alias}); err != nil {
		return "", fmt.Errorf("write backend %q: %w", name, err)
	}
	return text.String(), nil
}

// Text is the whole configuration.
func (c *Config) Text() string {
	if c.whole != "" {
		return c.whole
	}
	var text strings.Builder
	text.WriteString(c.Frame)
	for _, backend := range c.Backends {
		text.WriteString("\n" + backend.Text)
		for _, server := range backend.Servers {
			fmt.Fprintf(&text, "  server %s %s %s weight %d\n", server.Name, server.address(), server.Options, server.Weight)
		}
	}
	return text.String()
}

func (s Server) address() string {
	if strings.Contains(s.IP, ":") {
		return "[" + s.IP + "]:" + s.Port
	}
	return s.IP + ":" + s.Port
}

// backendName is what the backend of a route is called, which tells metrics and logs what it is.
func backendName(key model.ServiceAliasConfigKey, alias model.ServiceAliasConfig) string {
	kind := map[routev1.TLSTerminationType]string{
		routev1.TLSTerminationEdge: "be_edge_http", routev1.TLSTerminationReencrypt: "be_secure", routev1.TLSTerminationPassthrough: "be_tcp",
	}[alias.TLSTermination]
	if kind == "" {
		kind = "be_http"
	}
	return kind + ":" + string(key)
}

// servers are the endpoints of a route's services.
func (w *Writer) servers(key model.ServiceAliasConfigKey, alias model.ServiceAliasConfig, state *model.State, authority bool) (servers []Server) {
	shuffle := w.Settings.Text("ROUTER_BACKEND_PROCESS_ENDPOINTS") == "shuffle"
	for _, unit := range slices.Sorted(maps.Keys(alias.ServiceUnitNames)) {
		service := state.ServiceUnits[unit]
		_, name, _ := strings.Cut(service.Name, "/")
		for _, endpoint := range ordered(model.EndpointsOf(alias, service), shuffle) {
			servers = append(servers, Server{
				Name: fmt.Sprintf("pod:%s:%s:%s:%s:%s", endpoint.TargetName, name, endpoint.PortName, endpoint.IP, endpoint.Port),
				IP:   endpoint.IP, Port: endpoint.Port, Weight: alias.ServiceUnitNames[unit],
				Options: w.options(key, alias, service, endpoint, authority), Checked: alias.ActiveEndpoints > 1 && !endpoint.NoHealthCheck,
			})
		}
	}
	return servers
}

// options are the words behind a server's address that never change while it is there. authority says that services' authorities are known.
func (w *Writer) options(key model.ServiceAliasConfigKey, alias model.ServiceAliasConfig, service model.ServiceUnit, endpoint model.Endpoint, authority bool) string {
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
	if !endpoint.NoHealthCheck {
		words = append(words, "check inter "+interval(alias, w.Settings))
	}
	return strings.Join(words, " ")
}

// certificates adds the files of the routes' certificates.
func (w *Writer) certificates(state *model.State, files map[string][]byte) error {
	for key, alias := range state.Aliases {
		if pair := alias.Certificates[alias.Host]; pair.Contents != "" && ownCertificate(alias) {
			bundle, err := certificate.Bundle(&routev1.TLSConfig{Certificate: pair.Contents, Key: pair.PrivateKey, CACertificate: alias.Certificates[alias.Host+"_ca"].Contents})
			if err != nil {
				return fmt.Errorf("bundle certificate of route %q: %w", key, err)
			}
			files[certificateFile(key)] = bundle
		}
		if pods := alias.Certificates[alias.Host+"_pod"]; pods.Contents != "" {
			authorities, err := certificate.Authorities(pods.Contents)
			if err != nil {
				return fmt.Errorf("read destination certificate of route %q: %w", key, err)
			}
			files[authoritiesFile(key)] = authorities
		}
	}
	return nil
}

// serviceCA adds the file of the authorities of services' certificates.
func (w *Writer) serviceCA(files map[string][]byte) error {
	if w.ServiceCA == "" {
		return nil
	}
	content, err := os.ReadFile(w.ServiceCA)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		content, err = certificate.Authorities(string(content))
	}
	if err != nil {
		return fmt.Errorf("read authorities of services: %w", err)
	}
	files[serviceCAFile] = content
	return nil
}

func ownCertificate(alias model.ServiceAliasConfig) bool {
	return alias.Certificates[alias.Host].Contents != "" && alias.TLSTermination != routev1.TLSTerminationPassthrough
}

func certificateFile(key model.ServiceAliasConfigKey) string {
	return "router/certs/" + string(key) + ".pem"
}
func authoritiesFile(key model.ServiceAliasConfigKey) string {
	return "router/cacerts/" + string(key) + ".pem"
}
