// Package ldap connects to the LDAP servers that OpenShift's configuration files specify.
//
// Connections are encrypted: from the start with `ldaps`, and by StartTLS with `ldap`, unless the
// server is configured as insecure. Every step has a timeout, and filters escape external values.
package ldap

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/go-ldap/ldap/v3"
)

// timeout is the maximum duration of each connection step.
const timeout = 15 * time.Second

// Server describes a connection to a server.
type Server struct {
	// Scheme is `ldap` or `ldaps`. Address is host:port.
	Scheme, Address string
	// BindDN and BindPassword authenticate searches. If both are empty, searches are anonymous.
	BindDN, BindPassword string
	// Insecure disables encryption for connections with the scheme `ldap`.
	Insecure bool
	// TLS is the configuration that verifies the server's certificate. If it is nil, the machine's
	// CAs are trusted.
	TLS *tls.Config
}

// Conn is a connection. The caller must close it.
type Conn struct{ *ldap.Conn }

// Connect opens an encrypted connection without binding. The connection is closed when ctx is done.
func (s Server) Connect(ctx context.Context) (*Conn, error) {
	host, _, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, fmt.Errorf("connect to LDAP server %q: %w", s.Address, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.TLS != nil {
		config = s.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = host
	}
	dialer := &net.Dialer{Timeout: timeout}
	raw, err := dialer.DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return nil, fmt.Errorf("connect to LDAP server: %w", err)
	}
	if s.Scheme == "ldaps" {
		encrypted := tls.Client(raw, config)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, fmt.Errorf("connect to LDAP server %s: %w", s.Address, err)
		}
		raw = encrypted
	}
	conn := ldap.NewConn(raw, s.Scheme == "ldaps")
	conn.SetTimeout(timeout)
	conn.Start()
	if s.Scheme == "ldap" && !s.Insecure {
		if err := conn.StartTLS(config); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("start TLS with LDAP server %s: %w", s.Address, err)
		}
	}
	return &Conn{conn}, nil
}

// Bind connects and binds as BindDN.
func (s Server) Bind(ctx context.Context) (*Conn, error) {
	conn, err := s.Connect(ctx)
	if err != nil || s.BindDN == "" {
		return conn, err
	}
	if err := conn.Conn.Bind(s.BindDN, s.BindPassword); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("bind to LDAP server as %q: %w", s.BindDN, err)
	}
	return conn, nil
}

// ParseAddress parses an LDAP URL's scheme and address. It adds the default port.
func ParseAddress(text string) (scheme, address string, rest *url.URL, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", "", nil, fmt.Errorf("parse LDAP URL: %w", err)
	}
	port := map[string]string{"ldap": "389", "ldaps": "636"}[u.Scheme]
	switch {
	case port == "":
		return "", "", nil, fmt.Errorf("parse LDAP URL %q: must begin with ldap:// or ldaps://", text)
	case u.Hostname() == "":
		return "", "", nil, fmt.Errorf("parse LDAP URL %q: has no host", text)
	case u.Port() != "":
		port = u.Port()
	}
	return u.Scheme, net.JoinHostPort(u.Hostname(), port), u, nil
}

// Value returns the first value of the first attribute that an entry has. The `dn` attribute stands
// for the entry's distinguished name. A binary value is base64-encoded.
func Value(entry *ldap.Entry, attributes []string) string {
	for _, attribute := range attributes {
		if attribute == "dn" {
			return entry.DN
		}
		raw := entry.GetEqualFoldRawAttributeValue(attribute)
		if len(raw) == 0 {
			continue
		}
		if !utf8.Valid(raw) {
			return base64.RawURLEncoding.EncodeToString(raw)
		}
		return string(raw)
	}
	return ""
}

// Values returns all values of the first attribute that an entry has.
func Values(entry *ldap.Entry, attributes []string) []string {
	for _, attribute := range attributes {
		if values := entry.GetEqualFoldAttributeValues(attribute); len(values) > 0 {
			return values
		}
	}
	return nil
}
