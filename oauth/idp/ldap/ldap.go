// Package ldap is the identity provider LDAPPasswordIdentityProvider: a directory in which a person is looked for by user name, and which
// then checks the password by a bind in that person's name.
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

// Provider asks one directory.
type Provider struct {
	// Server is how it is reached, and as whom it is searched.
	Server ldap.Server
	// Query is where persons stand, and UserAttribute what their user name is compared with.
	Query         ldap.Query
	UserAttribute string
	// ID names the attributes of the unique name; of several the first that the person has counts, as for the others. `dn` is the entry's name.
	ID, PreferredUserName, Name, Email []string
}

var _ idp.Password = (*Provider)(nil)

// New reads a configured URL. bindDN and bindPassword are who searches, both may be empty.
func New(url, bindDN, bindPassword string) (*Provider, error) {
	server, query, attribute, err := ldap.ParseURL(url)
	if err != nil {
		return nil, err
	}
	server.BindDN, server.BindPassword = bindDN, bindPassword
	return &Provider{Server: server, Query: query, UserAttribute: attribute}, nil
}

// maxName is the longest user name that is looked for, in bytes.
const maxName = 512

// AuthenticatePassword looks for the person and binds as the one found. A name that several have is an error, since it says nothing.
func (p *Provider) AuthenticatePassword(ctx context.Context, user, password string) (*idp.Identity, error) {
	// A bind without a password succeeds for everybody (RFC 4513, section 5.1.2).
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
		return nil, fmt.Errorf("%d entries have the %s that was given; it must be of one", len(entries), p.UserAttribute)
	}
	found := entries[0]
	if err := conn.Conn.Bind(found.DN, password); err != nil {
		if ldap.IsWrongPassword(err) {
			return nil, idp.ErrRefused
		}
		return nil, fmt.Errorf("bind to LDAP server as the user: %w", err)
	}
	who := &idp.Identity{
		UserName: ldap.Value(found, p.ID), PreferredUserName: ldap.Value(found, p.PreferredUserName),
		Name: ldap.Value(found, p.Name), Email: ldap.Value(found, p.Email),
	}
	if who.UserName == "" {
		return nil, errors.New("the user's entry has none of the attributes of attributes.id")
	}
	return who, nil
}
