package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// client runs oc with its own kubeconfig.
type client struct {
	s    *server
	file string
}

func (s *server) client() *client {
	return &client{s, filepath.Join(s.t.TempDir(), "kubeconfig")}
}

// try runs oc with additional environment variables. To simulate a user without access to the
// administrator's kubeconfig, a test sets SLIPWAY_DATA_DIR to a directory that does not exist.
func (c *client) try(environment []string, args ...string) kit.Result {
	c.s.t.Helper()
	return c.s.SlipwayWith(append([]string{"KUBECONFIG=" + c.file}, environment...), append([]string{"oc"}, args...)...)
}

func (c *client) oc(args ...string) string {
	c.s.t.Helper()
	got := c.try(nil, args...)
	if got.Code != 0 {
		c.s.t.Fatalf("oc %s: exit code %d\n%s%s", strings.Join(args, " "), got.Code, got.Stdout, got.Stderr)
	}
	return got.Stdout
}

func TestOCLogsInAndOut(t *testing.T) {
	s := at(t, kit.Shared(t))
	oc := s.client()
	stranger := []string{"SLIPWAY_DATA_DIR=/nonexistent"}
	if got := oc.try(stranger, "login", s.url, "-u", "developer", "-p", s.DeveloperPassword()); got.Code == 0 || !strings.Contains(got.Stderr, "signed by unknown authority") {
		t.Errorf("without the CA certificate: %d, %s", got.Code, got.Stderr)
	}
	if got := oc.try(nil, "login", s.url, "-u", "developer", "-p", "wrong"); got.Code == 0 || !strings.Contains(got.Stderr, "Login failed (401 Unauthorized)") {
		t.Errorf("with a wrong password: %d, %s", got.Code, got.Stderr)
	}
	if got := oc.oc("login", s.url, "-u", "developer", "-p", s.DeveloperPassword()); !strings.HasPrefix(got, "Login successful.\n\n") {
		t.Errorf("oc login: %s", got)
	}
	token := strings.TrimSpace(oc.oc("whoami", "-t"))
	for command, want := range map[string]string{
		"whoami":               "developer\n",
		"whoami --show-server": s.url + "\n",
		"whoami -t":            "sha256~",
		"whoami -c":            "/" + strings.ReplaceAll(s.Address.String(), ".", "-") + ":8443/developer",
		"login":                `using existing credentials`,
	} {
		if got := oc.oc(strings.Fields(command)...); !strings.Contains(got, want) {
			t.Errorf("oc %s: %q, want %q", command, got, want)
		}
	}
	if got := oc.try(nil, "get", "nodes"); got.Code == 0 || !strings.Contains(got.Stderr, `User "developer" cannot list resource "nodes"`) {
		t.Errorf("a developer lists nodes: %s%s", got.Stdout, got.Stderr)
	}
	other := s.client()
	if got := other.oc("login", s.url, "--token="+token); !strings.Contains(got, `as "developer" using the token provided`) {
		t.Errorf("oc login --token: %s", got)
	}
	if got := oc.oc("logout"); got != fmt.Sprintf("Logged \"developer\" out on %q\n", s.url) {
		t.Errorf("oc logout: %s", got)
	}
	s.WaitFor("the token to be revoked", func(context.Context) error {
		if got := other.try(nil, "whoami"); got.Code == 0 {
			return errors.New("the token is still valid")
		}
		return nil
	})
	if got := oc.try(nil, "whoami", "-t"); got.Code == 0 || !strings.Contains(got.Stderr, "no token is currently in use") {
		t.Errorf("after the logout: %s%s", got.Stdout, got.Stderr)
	}
}

func TestUsersIdentitiesAndGroupsAreManaged(t *testing.T) {
	s := at(t, kit.Shared(t))
	if got := s.Slipway("htpasswd", "set", "demo"); got.Code == 0 {
		t.Error("an empty password was set")
	}
	s.MustSlipway("oc", "create", "user", "ajones", "--full-name=Adam Jones")
	s.OC("create", "identity", "htpasswd_auth:adam")
	s.OC("create", "useridentitymapping", "htpasswd_auth:adam", "ajones")
	s.outputContains("get user ajones", "NAME", "UID", "FULL NAME", "IDENTITIES", "Adam Jones", "htpasswd_auth:adam")
	s.outputContains("get identity htpasswd_auth:adam", "IDP NAME", "IDP USER NAME", "USER NAME", "USER UID", "ajones")
	s.outputContains("get useridentitymapping htpasswd_auth:adam -o jsonpath={.user.name}", "ajones")
	s.outputContains("label user/ajones level=gold", "user.user.openshift.io/ajones labeled")
	s.outputContains("describe user/ajones", "level=gold")
	s.outputContains("adm groups new west john betty", "group.user.openshift.io/west created")
	s.outputContains("get groups west", "NAME", "USERS", "john, betty")
	s.OC("adm", "groups", "add-users", "west", "ajones")
	s.OC("adm", "groups", "remove-users", "west", "john")
	s.outputContains("get groups west", "betty, ajones")
	for name, args := range map[string]string{
		"a path":                 "create user a/b",
		"a colon":                "create user system:admin",
		"the requesting user":    "create user ~",
		"a percent sign":         "create user a%b",
		"a long name":            "create user " + strings.Repeat("a", 300),
		"an invisible character": "create user adm\u200bin",
		"another form":           "create user e\u0301va",
		"a mapped identity":      "create useridentitymapping htpasswd_auth:adam developer",
		"an unknown identity":    "create useridentitymapping htpasswd_auth:eve ajones",
		"a virtual group":        "adm groups new system:masters developer",
	} {
		if got, err := s.TryOC(strings.Fields(args)...); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
	s.OC("delete", "useridentitymapping", "htpasswd_auth:adam")
	if got := s.OC("get", "user", "ajones", "-o", "jsonpath={.identities}"); strings.Contains(got, "adam") {
		t.Errorf("the user still has the identity: %s", got)
	}
}

// outputContains runs oc and fails the test for each string in want that the output does not
// contain.
func (s *server) outputContains(args string, want ...string) {
	s.t.Helper()
	got := s.OC(strings.Fields(args)...)
	for _, text := range want {
		if !strings.Contains(got, text) {
			s.t.Errorf("oc %s lacks %q:\n%s", args, text, got)
		}
	}
}

func TestGroupsGrantRights(t *testing.T) {
	s := at(t, kit.Shared(t))
	token := s.token("developer", s.DeveloperPassword())
	allowed := func() error {
		if got := s.do(s.browser(), http.MethodGet, "/api/v1/namespaces/"+s.Namespace+"/configmaps", nil, bearer(token)); got.StatusCode != http.StatusOK {
			self := s.do(s.browser(), http.MethodGet, "/apis/user.openshift.io/v1/users/~", nil, bearer(token))
			return fmt.Errorf("%s, the user is %s", got.Status, self.body)
		}
		return nil
	}
	if allowed() == nil {
		t.Fatal("the developer has the rights without the group")
	}
	s.OC("create", "rolebinding", "viewers", "--clusterrole=view", "--group=viewers")
	s.OC("adm", "groups", "new", "viewers", "developer")
	s.WaitFor("rights of the group", func(context.Context) error { return allowed() })
	s.OC("adm", "groups", "remove-users", "viewers", "developer")
	s.WaitFor("end of the rights", func(context.Context) error {
		if allowed() == nil {
			return errors.New("the developer still has the rights")
		}
		return nil
	})
}

func TestScopesLimitToken(t *testing.T) {
	s := at(t, kit.Shared(t))
	s.OC("create", "rolebinding", "developers", "--clusterrole=admin", "--user=developer")
	scoped := func(scopes string) string {
		got := s.do(s.browser(), http.MethodGet, implicit+"&"+url.Values{"scope": {scopes}}.Encode(), nil, basic("developer", s.DeveloperPassword()))
		values, err := url.ParseQuery(got.location(t).Fragment)
		if err != nil || values.Get("access_token") == "" {
			t.Fatalf("no token for %s: %s", scopes, got.Header.Get("Location"))
		}
		return values.Get("access_token")
	}
	pods, secrets := "/api/v1/namespaces/"+s.Namespace+"/pods", "/api/v1/namespaces/"+s.Namespace+"/secrets"
	const self, namespaces = "/apis/user.openshift.io/v1/users/~", "/api/v1/namespaces/default/pods"
	for scopes, want := range map[string]map[string]int{
		"user:full":                          {self: 200, pods: 200, secrets: 200, namespaces: 403},
		"user:info":                          {self: 200, pods: 403, secrets: 403},
		"user:list-projects":                 {self: 403, pods: 403},
		"role:edit:" + s.Namespace:           {self: 403, pods: 200, secrets: 403, namespaces: 403},
		"role:edit:" + s.Namespace + ":!":    {pods: 200, secrets: 200},
		"role:edit:*":                        {pods: 200, secrets: 403, namespaces: 403},
		"role:edit:other":                    {pods: 403},
		"user:info role:view:" + s.Namespace: {self: 200, pods: 200, secrets: 403},
	} {
		token := scoped(scopes)
		for path, status := range want {
			if got := s.do(s.browser(), http.MethodGet, path, nil, bearer(token)); got.StatusCode != status {
				t.Errorf("%s: GET %s: %s, want %d", scopes, path, got.Status, status)
			}
		}
	}
}

func TestUserGetsTokenOnPages(t *testing.T) {
	s := at(t, kit.Shared(t))
	browser := s.browser()
	authorize := s.do(browser, http.MethodGet, "/oauth/token/request", nil, nil).location(t)
	login := s.do(browser, http.MethodGet, authorize.String(), nil, nil).location(t)
	form := s.do(browser, http.MethodGet, login.String(), nil, nil).fields()
	form.Set("username", "developer")
	form.Set("password", s.DeveloperPassword())
	back := s.do(browser, http.MethodPost, "/login", form, nil).location(t)
	display := s.do(browser, http.MethodGet, back.String(), nil, nil).location(t)
	if display.Path != "/oauth/token/display" || display.Query().Get("code") == "" {
		t.Fatalf("sent to %s", display)
	}
	button := s.do(browser, http.MethodGet, display.String(), nil, nil)
	page := s.do(browser, http.MethodPost, "/oauth/token/display", button.fields(), nil)
	_, rest, ok := strings.Cut(page.body, "<pre>sha256~")
	token, _, _ := strings.Cut("sha256~"+rest, "<")
	if got := s.do(s.browser(), http.MethodGet, "/apis/user.openshift.io/v1/users/~", nil, bearer(token)); !ok || got.StatusCode != http.StatusOK {
		t.Errorf("%s with the token from the page: %s", got.Status, page.body)
	}
	if got := s.do(browser, http.MethodPost, "/oauth/token/display", button.fields(), nil); got.StatusCode != http.StatusBadRequest {
		t.Errorf("second use of the code: %s", got.Status)
	}
}
