package ldap

import (
	"errors"
	"testing"

	"github.com/slipway-platform/slipway/internal/ldap"
	"github.com/slipway-platform/slipway/internal/ldap/ldaptest"
	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/conformance"
	"github.com/slipway-platform/slipway/oauth/idp/remote"
)

const persons = `dn: ou=people,dc=example,dc=com
objectClass: organizationalUnit
ou: people

dn: cn=Alice A.,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
cn: Alice A.
sn: A.
uid: alice
mail: alice@example.com
userPassword: secret

dn: cn=Bob,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
cn: Bob
sn: B.
uid: bob
mail: shared@example.com
userPassword: secret

dn: cn=Bobby,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
cn: Bobby
sn: B.
uid: bobby
mail: shared@example.com
userPassword: secret
`

// provider returns a provider for a URL on the server.
func provider(t *testing.T, server *ldaptest.Server, url string) *Provider {
	t.Helper()
	p, err := New(url, ldaptest.AdminDN, ldaptest.AdminPassword)
	if err != nil {
		t.Fatal(err)
	}
	if p.Server.TLS, err = remote.Config(remote.TLS{CAFile: server.CAFile}); err != nil {
		t.Fatal(err)
	}
	p.ID, p.PreferredUserName, p.Name, p.Email = []string{"dn"}, []string{"uid"}, []string{"displayName", "cn"}, []string{"mail"}
	return p
}

func TestLDAP(t *testing.T) {
	server := ldaptest.Start(t, persons)
	alice := idp.Identity{UserName: "cn=Alice A.,ou=people,dc=example,dc=com", PreferredUserName: "alice", Name: "Alice A.", Email: "alice@example.com"}
	const search = "/ou=people,dc=example,dc=com?uid?one?(objectClass=inetOrgPerson)"
	unreachable := provider(t, server, "ldap://127.0.0.1:1"+search)
	for name, url := range map[string]string{"StartTLS": "ldap://" + server.Address, "ldaps": "ldaps://" + server.SecureAddress} {
		t.Run(name, conformance.Password{
			Provider: provider(t, server, url+search), User: "alice", Secret: "secret", Want: alice, Unreachable: unreachable,
		}.Test)
	}
	t.Run("without encryption", func(t *testing.T) {
		p := provider(t, server, "ldap://"+server.Address+search)
		p.Server.Insecure, p.Server.TLS = true, nil
		if _, err := p.AuthenticatePassword(t.Context(), "alice", "secret"); err != nil {
			t.Error(err)
		}
	})
	t.Run("a server certificate of another CA is rejected", func(t *testing.T) {
		for _, url := range []string{"ldap://" + server.Address, "ldaps://" + server.SecureAddress} {
			p := provider(t, server, url+search)
			p.Server.TLS = nil
			if got, err := p.AuthenticatePassword(t.Context(), "alice", "secret"); got != nil || err == nil || errors.Is(err, idp.ErrRefused) {
				t.Errorf("%v, %v", got, err)
			}
		}
	})
	t.Run("a filter excludes users", func(t *testing.T) {
		p := provider(t, server, "ldap://"+server.Address+"/dc=example,dc=com?uid?sub?(!(uid=alice))")
		if got, err := p.AuthenticatePassword(t.Context(), "alice", "secret"); got != nil || !errors.Is(err, idp.ErrRefused) {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("a name with two entries is an error", func(t *testing.T) {
		p := provider(t, server, "ldap://"+server.Address+"/dc=example,dc=com?mail")
		if got, err := p.AuthenticatePassword(t.Context(), "shared@example.com", "secret"); got != nil || err == nil || errors.Is(err, idp.ErrRefused) {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("a search without permission is an error", func(t *testing.T) {
		p := provider(t, server, "ldap://"+server.Address+search)
		p.Server.BindPassword = "wrong"
		if got, err := p.AuthenticatePassword(t.Context(), "alice", "secret"); got != nil || err == nil || errors.Is(err, idp.ErrRefused) {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("an entry without the ID attribute is an error", func(t *testing.T) {
		p := provider(t, server, "ldap://"+server.Address+search)
		p.ID = []string{"employeeNumber"}
		if got, err := p.AuthenticatePassword(t.Context(), "alice", "secret"); got != nil || err == nil || errors.Is(err, idp.ErrRefused) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestURLsAreParsed(t *testing.T) {
	server, query, attribute, err := ldap.ParseURL("ldaps://ldap.example.com/ou=a%20b,dc=example?mail,uid??(a=b%3fc)")
	if err != nil || server.Address != "ldap.example.com:636" || query.BaseDN != "ou=a b,dc=example" || attribute != "mail" ||
		query.Scope != "sub" || query.Filter != "(a=b?c)" {
		t.Errorf("%+v, %+v, %q, %v", server, query, attribute, err)
	}
	for _, invalid := range []string{"http://host/dc=a", "ldap:///dc=a", "ldap://host/dc=a?uid?all", "ldap://host/dc=a?uid?sub?(a=b", "ldap://host/nonsense", "ldap://host/dc=a?a?sub?(a=b)?x"} {
		if _, err := New(invalid, "", ""); err == nil {
			t.Errorf("%s was read", invalid)
		}
	}
}
