// Package masters writes the configuration of a HAProxy that balances connections over the API
// servers of several masters, as the HA method `native` of OpenShift 3 does (architecture 3.9,
// section 2.1.2.1).
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

// The defaults of a Config.
const (
	DefaultListen = "*:8443"
	DefaultStats  = "127.0.0.1:9000"
)

// defaultPort is the port of a master's API server.
const defaultPort = "8443"

//go:embed haproxy.cfg.tmpl
var configuration string

// Server is a master in the back end.
type Server struct {
	// Name is the name of the master, such as `master-0.example.com`.
	Name string
	// Address is the host:port of its API server.
	Address string
}

// Config describes a load balancer.
type Config struct {
	// Listen is the host:port for clients; the host can be `*`. Stats is the address of the
	// statistics, and of the page /status, which responds while HAProxy runs.
	Listen, Stats string
	// User is the user and group of HAProxy's process, or "".
	User string
	// Servers are the masters. Their names must differ.
	Servers []Server
}

var (
	namePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	hostPattern = regexp.MustCompile(`^(\*|[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+)$`)
)

// ParseServer reads NAME=HOST[:PORT], or HOST[:PORT], in which the host is the name.
func ParseServer(text string) (Server, error) {
	name, address, found := strings.Cut(text, "=")
	if !found {
		address = text
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), defaultPort
	}
	if !found {
		name = strings.ReplaceAll(host, ":", "-")
	}
	s := Server{Name: name, Address: net.JoinHostPort(host, port)}
	if err := s.check(); err != nil {
		return Server{}, fmt.Errorf("read master %q: %w; use NAME=HOST:PORT", text, err)
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

// Text returns the content of haproxy.cfg.
func (c Config) Text() ([]byte, error) {
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
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("write configuration of the load balancer: %w", err)
	}
	parsed, err := template.New("haproxy.cfg").Parse(configuration)
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, c); err != nil {
		return nil, fmt.Errorf("write configuration of the load balancer: %w", err)
	}
	return text.Bytes(), nil
}
