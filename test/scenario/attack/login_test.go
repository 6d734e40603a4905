package attack

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// site sends requests to a cluster as a browser or a program without an account does.
type site struct {
	*kit.Cluster
	t   *testing.T
	url string
}

func siteOf(t *testing.T, c *kit.Cluster) *site {
	return &site{c, t, "https://" + c.Address.String() + ":8443"}
}

// browser returns a client that stores cookies and does not follow redirects. It connects from the
// given loopback address, or from any address if from is nil.
func (s *site) browser(from net.IP) *http.Client {
	s.t.Helper()
	client := s.Browser()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	transport := client.Transport.(*http.Transport)
	transport.MaxIdleConnsPerHost = 1
	if from != nil {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
		transport.DialContext = func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
			err = s.Do(func() error {
				conn, err = dialer.DialContext(ctx, network, "127.0.0.1:8443")
				return err
			})
			return conn, err
		}
	}
	return client
}

// page is a response with its body.
type page struct {
	*http.Response
	body string
}

// send sends a POST request with the form, or a GET request if form is nil.
func (s *site) send(browser *http.Client, path string, form url.Values, change func(*http.Request)) (page, error) {
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, body)
	if err != nil {
		return page{}, err
	}
	request.Header.Set("Accept", "text/html")
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(request)
	}
	response, err := browser.Do(request)
	if err != nil {
		return page{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return page{response, string(content)}, err
}

func (s *site) get(browser *http.Client, path string) page {
	s.t.Helper()
	got, err := s.send(browser, path, nil, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

func (s *site) post(browser *http.Client, path string, form url.Values) page {
	s.t.Helper()
	got, err := s.send(browser, path, form, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]*)"`)

// logIn logs in the developer through the login page.
func (s *site) logIn(browser *http.Client) page {
	s.t.Helper()
	return s.post(browser, "/login", url.Values{
		"then": {"/oauth/token/request"}, "csrf": {s.csrf(browser, "/login")}, "username": {"developer"}, "password": {s.DeveloperPassword()},
	})
}

// csrf returns the CSRF value in a page's form.
func (s *site) csrf(browser *http.Client, path string) string {
	s.t.Helper()
	field := csrfField.FindStringSubmatch(s.get(browser, path).body)
	if field == nil {
		s.t.Fatalf("the page %s has no CSRF value", path)
	}
	return field[1]
}

// accounts contains two of the victim's service accounts. One is a valid OAuth client, and the
// other is invalid.
const accounts = `
apiVersion: v1
kind: ServiceAccount
metadata:
  name: proper
  annotations: {serviceaccounts.openshift.io/oauth-redirecturi.first: "https://proper.example.com/"}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: broken}
`

func TestStrangerCannotLearnWhichClientsAndProjectsExist(t *testing.T) {
	s := tenants(t)
	web := siteOf(t, s.Cluster)
	s.In(s.shop).Apply(accounts)
	plain := func(got page) string {
		location, _, _ := strings.Cut(got.Header.Get("Location"), "?")
		body, _, _ := strings.Cut(got.body, "?")
		return fmt.Sprint(got.StatusCode, " ", location, " ", got.Header.Get("Www-Authenticate"), " ", body)
	}
	ids := []string{
		"openshift-browser-client", "nobody", "system:serviceaccount:" + s.shop + ":proper", "system:serviceaccount:" + s.shop + ":broken",
		"system:serviceaccount:" + s.shop + ":nobody", "system:serviceaccount:nowhere:proper",
	}
	for name, ask := range map[string]func(id string) page{
		"authorize": func(id string) page {
			return web.get(web.browser(nil), "/oauth/authorize?"+url.Values{"client_id": {id}, "response_type": {"code"}, "redirect_uri": {"https://proper.example.com/"}}.Encode())
		},
		"approve": func(id string) page {
			return web.get(web.browser(nil), "/oauth/approve?"+url.Values{"then": {"/oauth/authorize?client_id=" + id}}.Encode())
		},
		"token without a secret": func(id string) page {
			return web.post(web.browser(nil), "/oauth/token", url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {"sha256~" + strings.Repeat("A", 43)}})
		},
		"token with a wrong secret": func(id string) page {
			return web.post(web.browser(nil), "/oauth/token", url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "client_secret": {"x"}, "code": {"x"}})
		},
	} {
		want := plain(ask(ids[0]))
		for _, id := range ids[1:] {
			if got := plain(ask(id)); got != want {
				t.Errorf("%s: %s returns\n%s\nand %s with\n%s", name, ids[0], want, id, got)
			}
		}
	}
	// The response for the broken service account must equal the response for a missing account.
	// Only the account's owner receives an event that describes the problem.
	browser := web.browser(nil)
	web.logIn(browser)
	code := "/oauth/authorize?response_type=code&client_id="
	events := func() int {
		list, err := s.Client.CoreV1().Events(s.shop).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=NoSAOAuthRedirectURIs"})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	if n := events(); n != 0 {
		t.Errorf("requests of strangers caused %d events", n)
	}
	broken, page := web.get(browser, code+ids[3]), web.get(browser, code+ids[4])
	if broken.StatusCode != http.StatusBadRequest || plain(broken) != plain(page) {
		t.Errorf("for the broken account, a user sees\n%s\nand for a missing one\n%s", plain(broken), plain(page))
	}
	s.WaitFor("the event for the owner", func(context.Context) error {
		if n := events(); n != 1 {
			return fmt.Errorf("%d events", n)
		}
		return nil
	})
}

func TestStrangerCannotLearnWhichBuildsExist(t *testing.T) {
	s := tenants(t)
	web := siteOf(t, s.Cluster)
	s.In(s.shop).Apply(`
apiVersion: build.openshift.io/v1
kind: BuildConfig
metadata: {name: front}
spec:
  source: {type: Git, git: {uri: "https://git.example.com/front.git"}}
  strategy: {type: Docker, dockerStrategy: {}}
  triggers: [{type: Generic, generic: {secret: a-real-secret}}]
`)
	hook := func(project, config string) string {
		got := web.post(web.browser(nil), "/apis/build.openshift.io/v1/namespaces/"+project+"/buildconfigs/"+config+"/webhooks/wrong-secret/generic", url.Values{})
		return strings.ReplaceAll(fmt.Sprint(got.StatusCode, " ", got.body), config, "NAME")
	}
	want := hook(s.shop, "front")
	if !strings.HasPrefix(want, "401 ") {
		t.Errorf("a wrong secret returns %s", want)
	}
	for _, other := range [][2]string{{s.shop, "nothing"}, {"nowhere", "front"}} {
		if got := hook(other[0], other[1]); got != want {
			t.Errorf("%s returns\n%s\nwant\n%s", other, got, want)
		}
	}
}

// publicPaths returns the paths of all public handlers, each with a query and a form. The word
// "treasure" marks secrets that responses must not contain.
func publicPaths(project string) map[string]struct {
	query string
	form  url.Values
} {
	type request = struct {
		query string
		form  url.Values
	}
	return map[string]request{
		"/oauth/authorize":       {query: "?client_id=demo&state=treasure"},
		"/oauth/approve":         {query: "?then=treasure"},
		"/oauth/token":           {form: url.Values{"grant_type": {"authorization_code"}, "client_id": {"demo"}, "client_secret": {"treasure"}}},
		"/oauth/token/request":   {},
		"/oauth/token/display":   {query: "?code=treasure"},
		"/oauth/token/implicit":  {},
		"/login":                 {query: "?then=treasure"},
		"/login/nobody":          {form: url.Values{"username": {"developer"}, "password": {"treasure"}}},
		"/logout":                {},
		"/oauth2callback/nobody": {query: "?code=treasure&state=treasure"},
		"/.well-known/oauth-authorization-server": {},
		"/version/openshift":                      {},
		"/console/login":                          {query: "?then=treasure"},
		"/console/callback":                       {query: "?code=treasure&state=treasure"},
		"/console/logout":                         {form: url.Values{"treasure": {"treasure"}}},
		"/apis/build.openshift.io/v1/namespaces/" + project + "/buildconfigs/front/webhooks/treasure/generic": {form: url.Values{}},
	}
}

func TestPublicHandlersApplyLimitsAndAudit(t *testing.T) {
	s := tenants(t)
	web := siteOf(t, s.Cluster)
	var schema string
	s.WaitFor("the FlowSchema of strangers", func(ctx context.Context) error {
		object, err := s.Client.FlowcontrolV1().FlowSchemas().Get(ctx, "unauthenticated", metav1.GetOptions{})
		if err == nil {
			schema = string(object.UID)
		}
		return err
	})
	for path, request := range publicPaths(s.shop) {
		s.WaitFor("the schema to be used for "+path, func(context.Context) error {
			got, err := web.send(web.browser(nil), path+request.query, request.form, nil)
			if err != nil {
				return err
			}
			if current := got.Header.Get("X-Kubernetes-Pf-Flowschema-Uid"); current != schema {
				return fmt.Errorf("the schema is %q, want %q", current, schema)
			}
			if got.Header.Get("Strict-Transport-Security") == "" || got.Header.Get("Audit-Id") == "" {
				t.Errorf("%s: the response has the headers %v", path, got.Header)
			}
			return nil
		})
	}
	s.WaitFor("the audit log", func(context.Context) error {
		content, err := os.ReadFile(s.Path("log", "audit.log"))
		if err != nil {
			return err
		}
		for path := range publicPaths(s.shop) {
			uri := strings.ReplaceAll(path, "treasure", "redacted")
			if path != "/version/openshift" && !strings.Contains(string(content), `"requestURI":"`+uri+`"`) {
				return fmt.Errorf("it lacks %s", uri)
			}
		}
		return nil
	})
	for _, log := range []string{"audit.log", "control-plane.log"} {
		content, err := os.ReadFile(s.Path("log", log))
		if err != nil {
			t.Fatal(err)
		}
		if at := strings.Index(string(content), "treasure"); at >= 0 {
			t.Errorf("%s contains a secret: %s", log, content[max(0, at-200):at+50])
		}
	}
}

func TestStrangerCannotBecomeAnotherUserInTheAuditLog(t *testing.T) {
	s := tenants(t)
	web := siteOf(t, s.Cluster)
	if _, err := web.send(web.browser(nil), "/logout", nil, func(r *http.Request) {
		r.Header.Set("Impersonate-User", "system:admin")
		r.Header.Set("Authorization", "Bearer nothing")
		r.Header.Set("User-Agent", "forger")
	}); err != nil {
		t.Fatal(err)
	}
	s.WaitFor("the line of the request", func(context.Context) error {
		content, err := os.ReadFile(s.Path("log", "audit.log"))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, `"userAgent":"forger"`) {
				if strings.Contains(line, "system:admin") || !strings.Contains(line, `"username":"system:anonymous"`) {
					t.Errorf("the audit log has %s", line)
				}
				return nil
			}
		}
		return fmt.Errorf("the line does not exist")
	})
}

func TestStrangersCannotDelayLogins(t *testing.T) {
	s := tenants(t)
	web := siteOf(t, s.Cluster)
	ctx, stop := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	defer flood.Wait()
	defer stop()
	var responses atomic.Int64
	const attackers = 60
	for i := range attackers {
		browser := web.browser(net.IPv4(127, 0, 0, 66))
		flood.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// Half of the connections send a request body that never ends, and the other half
				// guess passwords.
				path, body := "/oauth/authorize?client_id=openshift-challenging-client&response_type=token", io.Reader(nil)
				if i%2 == 0 {
					reader, writer := io.Pipe()
					context.AfterFunc(ctx, func() { writer.Close() })
					path, body = "/login", reader
				}
				request, err := http.NewRequestWithContext(ctx, map[bool]string{true: "POST", false: "GET"}[body != nil], web.url+path, body)
				if err != nil {
					t.Error(err)
					return
				}
				request.SetBasicAuth(fmt.Sprintf("guess-%d-%d", i, n), "wrong")
				request.Header.Set("X-CSRF-Token", "1")
				if response, err := browser.Do(request); err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					response.Body.Close()
					responses.Add(1)
				}
			}
		})
	}
	s.WaitFor("the flood", func(context.Context) error {
		if n := responses.Load(); n < attackers {
			return fmt.Errorf("%d requests have a response", n)
		}
		return nil
	})
	const requests = 30
	for range requests {
		s.alice.May("GET", kit.CorePath(s.shop, "serviceaccounts/default"), "")
	}
	// A user must still be able to log in from another address.
	s.WaitFor("a login from another address", func(context.Context) error {
		if got := web.logIn(web.browser(net.IPv4(127, 0, 0, 77))); got.Header.Get("Location") != "/oauth/token/request" {
			return fmt.Errorf("%s, sent to %q", got.Status, got.Header.Get("Location"))
		}
		return nil
	})
}

func TestThiefCannotUseCookieAfterLogout(t *testing.T) {
	c := kit.Shared(t)
	web := siteOf(t, c)
	browser, thief := web.browser(nil), web.browser(nil)
	login := web.logIn(browser)
	for _, cookie := range login.Cookies() {
		if !strings.HasPrefix(cookie.Name, "__Host-") || !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Domain != "" || cookie.Path != "/" {
			t.Errorf("the server sets the cookie %s", cookie.Raw)
		}
	}
	home, err := url.Parse(web.url)
	if err != nil {
		t.Fatal(err)
	}
	thief.Jar.SetCookies(home, browser.Jar.Cookies(home))
	const ask = "/oauth/authorize?client_id=openshift-browser-client&response_type=code"
	if got := web.get(thief, ask); !strings.Contains(got.Header.Get("Location"), "code=") {
		t.Fatalf("before the logout: %s to %q", got.Status, got.Header.Get("Location"))
	}
	web.post(browser, "/logout", url.Values{"csrf": {web.csrf(browser, "/logout")}})
	if got := web.get(thief, ask); !strings.HasPrefix(got.Header.Get("Location"), "/login") {
		t.Errorf("after the logout: %s to %q", got.Status, got.Header.Get("Location"))
	}
}
