// Package masters generates an HAProxy configuration that balances connections across the API
// servers of several masters. It corresponds to the `native` HA method of OpenShift 3 (architecture
// 3.9, section 2.1.2.1). It also runs HAProxy with this configuration.
package masters

import (
	"bytes"
	_ "embed" // for the template
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"text/template"
)

// Defaults for Config.
const (
	DefaultListen = "*:8443"
	DefaultStats  = "127.0.0.1:9000"
)

// defaultPort is the default port of a master's API server.
const defaultPort = "8443"

//go:embed haproxy.cfg.tmpl
var configuration string

// Server is a master in the backend.
type Server struct {
	// Name is the master's name, such as `master-0.example.com`.
	Name string
	// Address is the host:port address of the master's API server.
	Address string
}

// Config describes a load balancer.
type Config struct {
	// Listen is the host:port address for clients. The host can be `*`. Stats is the address for
	// statistics and for the /status page, which responds as long as HAProxy is running.
	Listen, Stats string
	// User is the user and group of the HAProxy process, or "".
	User string
	// Socket is the path to HAProxy's runtime interface, or "".
	Socket string
	// Servers lists the masters. Their names must be unique.
	Servers []Server
}

var (
	namePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	hostPattern = regexp.MustCompile(`^(\*|[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+)$`)
)

// ParseServer parses NAME=HOST[:PORT] or HOST[:PORT]. In the second form, the host is also the
// name.
func ParseServer(text string) (Server, error) {
	name, address, hasName := strings.Cut(text, "=")
	if !hasName {
		address = text
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), defaultPort
	}
	if !hasName {
		name = strings.ReplaceAll(host, ":", "-")
	}
	s := Server{Name: name, Address: net.JoinHostPort(host, port)}
	if err := s.check(); err != nil {
		return Server{}, fmt.Errorf("parse master %q: %w; use NAME=HOST:PORT", text, err)
	}
	return s, nil
}

func (s Server) check() error {
	if !namePattern.MatchString(s.Name) {
		return fmt.Errorf("the name %q contains characters other than letters, digits, dots and hyphens", s.Name)
	}
	return checkAddress(s.Address)
}

func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !hostPattern.MatchString(host) {
		return fmt.Errorf("%q is not HOST:PORT", address)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return fmt.Errorf("the port in %q is not between 1 and 65535", address)
	}
	return nil
}

// checkOptions contains the health check options for a master. They are set for each server,
// because a server that is added at run time does not inherit the options of the default server.
const checkOptions = "check check-ssl verify none inter 2s fall 2 rise 2 on-marked-down shutdown-sessions"

// backendName is the name of the backend in OpenShift 3's configuration.
const backendName = "mgmt8443"

// Text returns the content of haproxy.cfg.
func (c Config) Text() ([]byte, error) {
	frame, backend, err := c.parts()
	if err != nil {
		return nil, err
	}
	text := bytes.NewBufferString(frame + "\nbackend " + backendName + "\n" + backend)
	for _, s := range c.Servers {
		fmt.Fprintf(text, "  server %s %s\n", s.Name, s.Address)
	}
	return text.Bytes(), nil
}

// check returns all problems as one error.
func (c Config) check() error {
	var errs []error
	for _, address := range []string{c.Listen, c.Stats} {
		errs = append(errs, checkAddress(address))
	}
	if len(c.Servers) == 0 {
		errs = append(errs, errors.New("no masters"))
	}
	names := map[string]bool{}
	for _, s := range c.Servers {
		errs = append(errs, s.check())
		if names[s.Name] {
			errs = append(errs, fmt.Errorf("two masters have the name %q", s.Name))
		}
		names[s.Name] = true
	}
	return errors.Join(errs...)
}

// parts returns the text before the backend, and the backend's lines before its servers.
func (c Config) parts() (frame, backend string, err error) {
	if err := c.check(); err != nil {
		return "", "", fmt.Errorf("write load balancer configuration: %w", err)
	}
	parsed, err := template.New("haproxy.cfg").Funcs(template.FuncMap{"options": func() string { return checkOptions }}).Parse(configuration)
	if err != nil {
		return "", "", fmt.Errorf("parse template: %w", err)
	}
	var texts [2]strings.Builder
	for i, name := range []string{"frame", "backend"} {
		if err := parsed.ExecuteTemplate(&texts[i], name, c); err != nil {
			return "", "", fmt.Errorf("write load balancer configuration: %w", err)
		}
	}
	return texts[0].String(), texts[1].String(), nil
}
