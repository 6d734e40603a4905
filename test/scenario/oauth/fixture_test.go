package oauth

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/ldap/ldaptest"
	"github.com/slipway-platform/slipway/internal/oauthtest"
	"github.com/slipway-platform/slipway/test/kit"
)

// fixture is a machine that runs one server of each kind that can authenticate users. Every server
// has a user, such as alice, with the password `secret`.
type fixture struct {
	*kit.Cluster
	t *testing.T
	// ldap is OpenLDAP's slapd, remote implements basic authentication, and keystone implements
	// OpenStack's API. The other servers are OAuth servers.
	ldap                                     *ldaptest.Server
	remote, keystone, github, gitlab, openid *httptest.Server
	// proxy is the URL of an HAProxy in front of the master. It checks passwords, and authenticates
	// to the master with a client certificate.
	proxy string
	// audit is the configuration line that enables the audit log for all requests.
	audit string
	// proxyCA is the CA that signs the proxy's client certificate. The master's configuration
	// refers to this CA's file.
	proxyCA *certtest.Authority
}

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
`

// build starts the fixture's servers.
func build(t *testing.T, c *kit.Cluster) *fixture {
	t.Helper()
	b := &fixture{Cluster: c, t: t, ldap: ldaptest.StartOn(t, c, persons), proxyCA: certtest.New(t)}
	alice := map[string]any{"sub": "4711", "id": 12, "login": "alice", "nickname": "alice", "preferred_username": "alice", "name": "Alice A."}
	b.remote = b.serve(http.HandlerFunc(checkBasic))
	b.keystone = b.serve(http.HandlerFunc(checkKeystone))
	b.github = b.serve(&oauthtest.Server{
		Authorize: "/login/oauth/authorize", Token: "/login/oauth/access_token", API: map[string]any{"/api/v3/user": alice},
	})
	b.gitlab = b.serve(&oauthtest.Server{
		Authorize: "/oauth/authorize", Token: "/oauth/token", Claims: alice, API: map[string]any{"/oauth/userinfo": alice},
	})
	b.openid = b.serve(&oauthtest.Server{Authorize: "/authorize", Token: "/token", Claims: alice})
	return b
}

// serve starts a TLS server on the machine.
func (b *fixture) serve(handler http.Handler) *httptest.Server {
	b.t.Helper()
	listener, err := b.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	server.Listener = listener
	server.StartTLS()
	b.t.Cleanup(server.Close)
	return server
}

// checkBasic implements the basic authentication server according to the OpenShift 3 documentation.
func checkBasic(w http.ResponseWriter, r *http.Request) {
	if user, password, ok := r.BasicAuth(); !ok || user != "carol" || password != "secret" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	fmt.Fprint(w, `{"sub":"4712","name":"Carol C.","preferred_username":"carol"}`)
}

// checkKeystone implements authentication with version 3 of the Keystone API.
func checkKeystone(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct{ Name, Password string }
				}
			}
		}
	}
	if r.URL.Path != "/v3/auth/tokens" || json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if user := body.Auth.Identity.Password.User; user.Name != "erin" || user.Password != "secret" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, `{"token":{"user":{"id":"0af1","name":"erin","domain":{"id":"d","name":"default"}}}}`)
}

// authorityOf returns the path of a file with a test server's CA certificate.
func (b *fixture) authorityOf(server *httptest.Server) string {
	return b.file("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
}

func (b *fixture) file(name, content string) string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// write writes a master configuration that consists of an oauthConfig section and the lines in
// beside.
func (b *fixture) write(oauthConfig []string, beside ...string) {
	b.t.Helper()
	lines := append([]string{"apiVersion: v1", "kind: MasterConfig"}, beside...)
	lines = append(lines, "oauthConfig:")
	for _, line := range oauthConfig {
		lines = append(lines, "  "+line)
	}
	if err := os.WriteFile(b.MasterFile(), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// provider returns the configuration line for an identity provider.
func provider(name, method string, challenge bool, kind, settings string) string {
	return fmt.Sprintf("- {name: %s, challenge: %t, login: true, mappingMethod: %s, provider: {apiVersion: v1, kind: %sIdentityProvider, %s}}",
		name, challenge, method, kind, settings)
}

// providers returns the configuration lines for all of the fixture's providers.
func (b *fixture) providers() []string {
	registration := fmt.Sprintf("clientID: %s, clientSecret: {file: %s}", oauthtest.ClientID, b.file("secret", oauthtest.ClientSecret))
	oidc := "claims: {id: [sub], preferredUsername: [preferred_username], name: [name]}, urls: {authorize: %[1]s/authorize, token: %[1]s/token}"
	return []string{
		"identityProviders:",
		provider("file", "claim", true, "HTPasswdPassword", "file: ../users.htpasswd"),
		provider("ldap", "claim", true, "LDAPPassword", fmt.Sprintf(
			`url: "ldap://%s/ou=people,dc=example,dc=com?uid?one", bindDN: "%s", bindPassword: {file: %s}, ca: %s, attributes: {id: [dn], preferredUsername: [uid], name: [cn]}`,
			b.ldap.Address, ldaptest.AdminDN, b.file("password", ldaptest.AdminPassword), b.ldap.CAFile)),
		provider("remote", "claim", true, "BasicAuthPassword", fmt.Sprintf("url: %s/check, ca: %s", b.remote.URL, b.authorityOf(b.remote))),
		provider("keystone", "lookup", true, "KeystonePassword", fmt.Sprintf("url: %s, ca: %s, domainName: default", b.keystone.URL, b.authorityOf(b.keystone))),
		provider("nobody", "claim", true, "DenyAllPassword", ""),
		provider("github", "claim", false, "GitHub", fmt.Sprintf("hostname: %s, ca: %s, %s", b.github.Listener.Addr(), b.authorityOf(b.github), registration)),
		provider("gitlab", "generate", false, "GitLab", fmt.Sprintf("url: %s, ca: %s, %s", b.gitlab.URL, b.authorityOf(b.gitlab), registration)),
		provider("openid", "add", false, "OpenID", fmt.Sprintf(oidc+", ca: %s, %s", b.openid.URL, b.authorityOf(b.openid), registration)),
		provider("proxy", "claim", true, "RequestHeader", fmt.Sprintf(
			`challengeURL: "%[1]s/challenging-proxy/oauth/authorize?${query}", loginURL: "%[1]s/login-proxy/oauth/authorize?${query}", clientCA: %[2]s, clientCommonNames: [proxy], headers: [X-Remote-User]`,
			b.proxy, b.proxyCA.File)),
	}
}

// startProxy runs HAProxy in front of the master, at the given address.
func (b *fixture) startProxy(address string) {
	b.t.Helper()
	front, back := b.proxyCA.Issue(b.t, "front"), b.proxyCA.Issue(b.t, "proxy")
	config := fmt.Sprintf(`defaults
	mode http
	timeout connect 10s
	timeout client 60s
	timeout server 60s
userlist persons
	user dave insecure-password secret
frontend front
	bind %s ssl crt %s
	http-request auth realm proxy unless { http_auth(persons) }
	http-request set-header X-Remote-User %%[http_auth_user]
	http-request del-header Authorization
	http-request replace-path /(challenging|login)-proxy(/.*) \2
	default_backend master
backend master
	server master %s:8443 ssl crt %s verify required ca-file %s
`, address, join(b, front), b.Address, join(b, back), b.Path("pki", "ca.crt"))
	proxy := exec.Command("haproxy", "-db", "-f", b.file("haproxy.cfg", config))
	log, err := os.Create(filepath.Join(b.t.TempDir(), "log"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer log.Close()
	proxy.Stdout, proxy.Stderr = log, log
	if err := b.Do(proxy.Start); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = proxy.Process.Kill()
		_ = proxy.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && b.t.Failed() {
			b.t.Logf("haproxy: %s", text)
		}
	})
	b.WaitFor("the proxy", func(ctx context.Context) error {
		conn, err := b.Dial(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// join returns the path of a file that contains both a certificate and its key.
func join(b *fixture, pair certtest.Pair) string {
	b.t.Helper()
	var both string
	for _, path := range []string{pair.CertFile, pair.KeyFile} {
		content, err := os.ReadFile(path)
		if err != nil {
			b.t.Fatal(err)
		}
		both += string(content)
	}
	return b.file("pair.pem", both)
}

// freeAddress returns an address on the machine at which no process is listening.
func (b *fixture) freeAddress() string {
	b.t.Helper()
	listener, err := b.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	defer func(l net.Listener) { _ = l.Close() }(listener)
	return listener.Addr().String()
}
