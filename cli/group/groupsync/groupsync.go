// Package groupsync reads user groups from an LDAP directory, as specified by an OpenShift 3
// LDAPSyncConfig. It supports three schemas. In RFC 2307, groups list their members. In Active
// Directory, users list their groups. In augmented Active Directory, the groups also have their own
// entries, which contain names.
package groupsync

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/ldap"
)

// ErrNoGroup is returned if the directory does not contain a group.
var ErrNoGroup = errors.New("the directory has no such group")

// Group is a group in the directory.
type Group struct {
	// UID identifies the group in the directory. Name is the group's name in the cluster. Users
	// contains the members' names in the cluster.
	UID, Name string
	Users     []string
}

// Source reads groups.
type Source interface {
	// UIDs returns the UIDs of all groups.
	UIDs() ([]string, error)
	// Group returns one group, or ErrNoGroup if the directory does not contain it.
	Group(uid string) (Group, error)
}

// Read reads and validates a sync configuration. Relative paths in the configuration are relative
// to the file's directory.
func Read(file string) (*legacyv1.LDAPSyncConfig, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read sync configuration: %w", err)
	}
	config := &legacyv1.LDAPSyncConfig{}
	if err := yaml.UnmarshalStrict(content, config); err != nil {
		return nil, fmt.Errorf("read sync configuration %q: %w", file, err)
	}
	for _, path := range []*string{&config.CA, &config.BindPassword.File} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(file), *path)
		}
	}
	schemas := 0
	for _, set := range []bool{config.RFC2307Config != nil, config.ActiveDirectoryConfig != nil, config.AugmentedActiveDirectoryConfig != nil} {
		if set {
			schemas++
		}
	}
	if config.Kind != "LDAPSyncConfig" || schemas != 1 {
		return nil, fmt.Errorf("read sync configuration %q: must be of kind LDAPSyncConfig with one of rfc2307, activeDirectory and augmentedActiveDirectory", file)
	}
	return config, nil
}

// Directory is a connection to an LDAP directory.
type Directory struct {
	Source
	// Host is the directory's host name or IP address. Address is HOST:PORT.
	Host, Address string

	conn *ldap.Conn
}

// Open connects to the directory that a sync configuration specifies. The caller must call Close.
func Open(ctx context.Context, config *legacyv1.LDAPSyncConfig, server ldap.Server) (*Directory, error) {
	scheme, address, u, err := ldap.ParseAddress(config.URL)
	if err != nil {
		return nil, err
	}
	server.Scheme, server.Address, server.Insecure, server.BindDN = scheme, address, config.Insecure, config.BindDN
	conn, err := server.Bind(ctx)
	if err != nil {
		return nil, err
	}
	source, err := sourceOf(conn, config)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("use sync configuration: %w", err)
	}
	return &Directory{Source: source, Host: u.Hostname(), Address: address, conn: conn}, nil
}

// Close closes the connection.
func (d *Directory) Close() error { return d.conn.Close() }

// query converts a query in the sync configuration's format to an ldap.Query.
func query(q legacyv1.LDAPQuery) ldap.Query {
	return ldap.Query{BaseDN: q.BaseDN, Scope: q.Scope, DerefAliases: q.DerefAliases, Filter: q.Filter, TimeLimit: q.TimeLimit, PageSize: q.PageSize}
}

// sourceOf validates the queries in a sync configuration, and returns the source for the
// configuration's schema.
func sourceOf(conn *ldap.Conn, config *legacyv1.LDAPSyncConfig) (Source, error) {
	var problems []error
	check := func(name string, q ldap.Query) {
		if err := q.Validate(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	names := config.LDAPGroupUIDToOpenShiftGroupNameMapping
	var source Source
	switch {
	case config.RFC2307Config != nil:
		c := config.RFC2307Config
		check("rfc2307.groupsQuery", query(c.AllGroupsQuery))
		check("rfc2307.usersQuery", query(c.AllUsersQuery))
		source = &rfc2307{conn, c, names, map[string]string{}}
	case config.ActiveDirectoryConfig != nil:
		c := config.ActiveDirectoryConfig
		check("activeDirectory.usersQuery", query(c.AllUsersQuery))
		source = &activeDirectory{conn, query(c.AllUsersQuery), c.UserNameAttributes, c.GroupMembershipAttributes, func(uid string) (string, error) {
			if name := names[uid]; name != "" {
				return name, nil
			}
			return uid, nil
		}}
	default:
		c := config.AugmentedActiveDirectoryConfig
		check("augmentedActiveDirectory.usersQuery", query(c.AllUsersQuery))
		check("augmentedActiveDirectory.groupsQuery", query(c.AllGroupsQuery))
		groups := &rfc2307{conn, &legacyv1.RFC2307Config{
			AllGroupsQuery: c.AllGroupsQuery, GroupUIDAttribute: c.GroupUIDAttribute, GroupNameAttributes: c.GroupNameAttributes,
		}, names, nil}
		source = &activeDirectory{conn, query(c.AllUsersQuery), c.UserNameAttributes, c.GroupMembershipAttributes, groups.name}
	}
	return source, errors.Join(problems...)
}

// sorted sorts a list in place and deduplicates it.
func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
