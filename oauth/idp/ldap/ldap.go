// Package ldap implements LDAPPasswordIdentityProvider: it searches a directory for the user name,
// and then checks the password with a bind as that user.
package ldap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/slipway-platform/slipway/internal/ldap"
	"github.com/slipway-platform/slipway/oauth/idp"
)

// Provider authenticates users with one directory.
type Provider struct {
	// Server contains the connection settings and the account for searches.
	Server ldap.Server
	// Query selects users. UserAttribute is the attribute that contains the user name.
	Query         ldap.Query
	UserAttribute string
	// ID lists the attributes that can contain the unique name. The provider uses the first
	// attribute that an entry has. The other fields work in the same way. `dn` means the entry's
	// distinguished name.
	ID, PreferredUserName, Name, Email []string
}

var _ idp.Password = (*Provider)(nil)

// New returns a provider for the directory at a configured URL. bindDN and bindPassword are the
// credentials for searches. Both can be empty.
func New(url, bindDN, bindPassword string) (*Provider, error) {
	server, query, attribute, err := ldap.ParseURL(url)
	if err != nil {
		return nil, err
	}
	server.BindDN, server.BindPassword = bindDN, bindPassword
	return &Provider{Server: server, Query: query, UserAttribute: attribute}, nil
}

// maxName is the maximum length of a user name, in bytes.
const maxName = 512

// AuthenticatePassword searches for the user and binds with the password. It returns an error if
// several entries match the name.
func (p *Provider) AuthenticatePassword(ctx context.Context,
	user, password string) (*idp.Identity, error) {
	// Reject an empty password, because a bind without a password always succeeds (RFC 4513,
	// section 5.1.2).
	if user == "" || password == "" || len(user) > maxName || !utf8.ValidString(user) || strings.Contains(user, "\x00") {
		return nil, idp.ErrRefused
	}
	conn, err := p.Server.Bind(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var attributes []string
	for _, some := range [][]string{p.ID, p.PreferredUserName, p.Name, p.Email} {
		attributes = append(attributes, some...)
	}
	entries, err := conn.Search(p.Query.With(p.UserAttribute, user), attributes, 2)
	switch {
	case err != nil:
		return nil, err
	case len(entries) == 0:
		return nil, idp.ErrRefused
	case len(entries) > 1:
		return nil, fmt.Errorf("%d entries have the user name in attribute %s; the attribute must be unique", len(entries), p.UserAttribute)
	}
	entry := entries[0]
	if err := conn.Conn.Bind(entry.DN, password); err != nil {
		if ldap.IsWrongPassword(err) {
			return nil, idp.ErrRefused
		}
		return nil, fmt.Errorf("bind to LDAP server as the user: %w", err)
	}
	identity := &idp.Identity{
		UserName: ldap.Value(entry, p.ID), PreferredUserName: ldap.Value(entry, p.PreferredUserName),
		Name: ldap.Value(entry, p.Name), Email: ldap.Value(entry, p.Email),
	}
	if identity.UserName == "" {
		return nil, errors.New("the user's entry lacks the attributes in attributes.id")
	}
	return identity, nil
}
