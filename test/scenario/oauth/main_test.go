// Package oauth tests the OAuth server on a real cluster. Users and programs must receive tokens
// with the user's permissions, according to section 4.1.4 of the OpenShift 3.9 Architecture guide.
// Attackers must not receive tokens.
package oauth

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// server is a cluster's OAuth server.
type server struct {
	*kit.Cluster
	t   *testing.T
	url string
}

func at(t *testing.T, c *kit.Cluster) *server {
	return &server{c, t, "https://" + c.Address.String() + ":8443"}
}

// browser returns a client that stores cookies, trusts the cluster and does not follow redirects.
func (s *server) browser() *http.Client {
	s.t.Helper()
	client := s.Browser()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// reply is a response together with its body.
type reply struct {
	*http.Response
	body string
}

// do sends a request. path is a path on the OAuth server or a complete URL.
func (s *server) do(client *http.Client, method, path string, form url.Values, change func(*http.Request)) reply {
	s.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = s.url + path
	}
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(request)
	}
	response, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{response, string(content)}
}

// location returns the redirect target of a response.
func (a reply) location(t *testing.T) *url.URL {
	t.Helper()
	address, err := a.Location()
	if err != nil {
		t.Fatalf("%s without a Location: %s", a.Status, a.body)
	}
	return address
}

// basic returns a function that adds basic authentication credentials to a request, as `curl -u`
// does.
func basic(user, password string) func(*http.Request) {
	return func(r *http.Request) {
		r.SetBasicAuth(user, password)
		r.Header.Set("X-CSRF-Token", "xxx")
	}
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

const implicit = "/oauth/authorize?client_id=openshift-challenging-client&response_type=token"

// token logs in with a user name and a password, and returns a token.
func (s *server) token(user, password string) string {
	s.t.Helper()
	got := s.do(s.browser(), http.MethodGet, implicit, nil, basic(user, password))
	values, err := url.ParseQuery(got.location(s.t).Fragment)
	if err != nil || values.Get("access_token") == "" {
		s.t.Fatalf("no token for %s: %s, %s", user, got.Status, got.Header.Get("Location"))
	}
	return values.Get("access_token")
}

var hidden = regexp.MustCompile(`name="(csrf|then|code)" value="([^"]*)"`)

// fields returns the hidden fields of a page's form.
func (a reply) fields() url.Values {
	form := url.Values{}
	for _, field := range hidden.FindAllStringSubmatch(a.body, -1) {
		form.Set(field[1], strings.ReplaceAll(strings.ReplaceAll(field[2], "&amp;", "&"), "&#43;", "+"))
	}
	return form
}
