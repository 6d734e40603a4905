package groupsync

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/internal/ldap"
	"github.com/slipway-platform/slipway/internal/ldap/ldaptest"
)

const entries = `dn: ou=users,dc=example,dc=com
objectClass: organizationalUnit
ou: users

dn: ou=groups,dc=example,dc=com
objectClass: organizationalUnit
ou: groups

dn: cn=Jane,ou=users,dc=example,dc=com
objectClass: inetOrgPerson
cn: Jane
sn: Smith
mail: jane@example.com

dn: cn=Jim (Ops),ou=users,dc=example,dc=com
objectClass: inetOrgPerson
cn: Jim (Ops)
sn: Adams
mail: jim@example.com

dn: cn=admins,ou=groups,dc=example,dc=com
objectClass: groupOfNames
cn: admins
description: Cluster admins
member: cn=Jane,ou=users,dc=example,dc=com
member: cn=Jim (Ops),ou=users,dc=example,dc=com

dn: cn=lost,ou=groups,dc=example,dc=com
objectClass: groupOfNames
cn: lost
member: cn=Gone,ou=users,dc=example,dc=com
member: cn=admin,dc=example,dc=com
member: cn=Jane,ou=users,dc=example,dc=com
`

const (
	admins = "cn=admins,ou=groups,dc=example,dc=com"
	lost   = "cn=lost,ou=groups,dc=example,dc=com"
	users  = "{baseDN: 'ou=users,dc=example,dc=com', scope: sub, derefAliases: never, filter: '(objectClass=inetOrgPerson)', pageSize: 1}"
	groups = "{baseDN: 'ou=groups,dc=example,dc=com', scope: sub, filter: '(objectClass=groupOfNames)'}"
)

// open connects to the directory of a server. schema is the part of the sync configuration that
// specifies the schema, in YAML.
func open(t *testing.T, server *ldaptest.Server, schema string) *Directory {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sync.yaml")
	text := fmt.Sprintf("kind: LDAPSyncConfig\napiVersion: v1\nurl: ldap://%s\nbindDN: %s\n%s\n", server.Address, ldaptest.AdminDN, schema)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	authority, err := os.ReadFile(server.CAFile)
	if err != nil || !pool.AppendCertsFromPEM(authority) {
		t.Fatal(err)
	}
	directory, err := Open(t.Context(), config, ldap.Server{BindPassword: ldaptest.AdminPassword, TLS: &tls.Config{RootCAs: pool}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = directory.Close() })
	return directory
}

func TestGroupsOfEachSchema(t *testing.T) {
	server := ldaptest.Start(t, entries)
	tests := []struct {
		name, schema string
		uids         []string
		want         Group
	}{
		{"RFC 2307", "rfc2307: {groupsQuery: " + groups + ", groupUIDAttribute: dn, groupNameAttributes: [cn], groupMembershipAttributes: [member], usersQuery: " + users + ", userUIDAttribute: dn, userNameAttributes: [mail]}",
			[]string{admins, lost}, Group{admins, "admins", []string{"jane@example.com", "jim@example.com"}}},
		{"RFC 2307 with another name", "groupUIDNameMapping: {'" + admins + "': Administrators}\nrfc2307: {groupsQuery: " + groups + ", groupUIDAttribute: dn, groupNameAttributes: [cn], groupMembershipAttributes: [member], usersQuery: " + users + ", userUIDAttribute: dn, userNameAttributes: [cn]}",
			[]string{admins, lost}, Group{admins, "Administrators", []string{"Jane", "Jim (Ops)"}}},
		{"Active Directory", "activeDirectory: {usersQuery: " + users + ", userNameAttributes: [mail], groupMembershipAttributes: [memberOf]}",
			[]string{admins, lost}, Group{admins, admins, []string{"jane@example.com", "jim@example.com"}}},
		{"augmented Active Directory", "augmentedActiveDirectory: {groupsQuery: " + groups + ", groupUIDAttribute: dn, groupNameAttributes: [description, cn], usersQuery: " + users + ", userNameAttributes: [mail], groupMembershipAttributes: [memberOf]}",
			[]string{admins, lost}, Group{admins, "Cluster admins", []string{"jane@example.com", "jim@example.com"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			directory := open(t, server, tt.schema)
			uids, err := directory.UIDs()
			if diff := cmp.Diff(tt.uids, uids); diff != "" || err != nil {
				t.Errorf("groups: %v (-want +got):\n%s", err, diff)
			}
			got, err := directory.Group(admins)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("group: %v (-want +got):\n%s", err, diff)
			}
			for _, none := range []string{"cn=none,ou=groups,dc=example,dc=com", "cn=admin,dc=example,dc=com", "*", "x)(cn=*"} {
				if got, err := directory.Group(none); !errors.Is(err, ErrNoGroup) && (err == nil || !strings.Contains(err.Error(), "DN")) {
					t.Errorf("group %q: %v, %v", none, got, err)
				}
			}
		})
	}
	rfc := func(tolerate string) string {
		return "rfc2307: {groupsQuery: " + groups + ", groupUIDAttribute: dn, groupNameAttributes: [cn], groupMembershipAttributes: [member], usersQuery: " + users +
			", userUIDAttribute: dn, userNameAttributes: [mail]" + tolerate + "}"
	}
	t.Run("missing members", func(t *testing.T) {
		if got, err := open(t, server, rfc("")).Group(lost); err == nil {
			t.Errorf("%v", got)
		}
		got, err := open(t, server, rfc(", tolerateMemberNotFoundErrors: true, tolerateMemberOutOfScopeErrors: true")).Group(lost)
		if diff := cmp.Diff([]string{"jane@example.com"}, got.Users); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func TestInvalidSyncConfigurationsAreRejected(t *testing.T) {
	for name, text := range map[string]string{
		"no schema":    "kind: LDAPSyncConfig\napiVersion: v1\nurl: ldap://host\n",
		"two schemas":  "kind: LDAPSyncConfig\napiVersion: v1\nrfc2307: {}\nactiveDirectory: {}\n",
		"unknown key":  "kind: LDAPSyncConfig\napiVersion: v1\nrfc2307: {}\nurls: x\n",
		"another kind": "kind: MasterConfig\nrfc2307: {}\n",
	} {
		file := filepath.Join(t.TempDir(), "sync.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
