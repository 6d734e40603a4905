package oauth

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	oauthv1 "github.com/openshift/api/oauth/v1"
	routev1 "github.com/openshift/api/route/v1"
	userv1 "github.com/openshift/api/user/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/throttle"
	"github.com/slipway-platform/slipway/oauth/idp/anyone"
	"github.com/slipway-platform/slipway/oauth/login"
	"github.com/slipway-platform/slipway/oauth/mapping"
	"github.com/slipway-platform/slipway/oauth/session"
	"github.com/slipway-platform/slipway/oauth/store/storetest"
	"github.com/slipway-platform/slipway/oauth/token"
)

// fixture is an OAuth server that stores its objects in memory and serves over TLS.
type fixture struct {
	*server
	t       testing.TB
	handler http.Handler
	url     string
	tls     *tls.Config
	tokens  *storetest.Objects[*oauthv1.OAuthAccessToken]
	codes   *storetest.Objects[*oauthv1.OAuthAuthorizeToken]
	users   *storetest.Objects[*userv1.User]
	kube    *fake.Clientset

	mutex  sync.Mutex
	errors []string
}

// app is the redirect URI of a client whose grants require approval.
const app = "https://app.example.com/callback"

// newFixture creates a server that accepts any user name and password. change, if not nil, adjusts
// the server's configuration.
func newFixture(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	w := &fixture{
		t:      t,
		tokens: storetest.New[*oauthv1.OAuthAccessToken](oauthv1.Resource("oauthaccesstokens")),
		codes:  storetest.New[*oauthv1.OAuthAuthorizeToken](oauthv1.Resource("oauthauthorizetokens")),
		users:  storetest.New[*userv1.User](userv1.Resource("users")),
		kube: fake.NewClientset(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "myproject", Name: "proxy", Annotations: map[string]string{
			"serviceaccounts.openshift.io/oauth-redirecturi.first": "https://proxy.example.com/oauth",
		}}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "myproject", Name: "broken"}}),
	}
	w.tokens.Field = func(t *oauthv1.OAuthAccessToken, _ string) string { return t.AuthorizeToken }
	w.kube.PrependReactor("create", "tokenreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.TokenReview{}, nil
	})
	var handler http.Handler
	listener := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, r *http.Request) { handler.ServeHTTP(writer, r) }))
	t.Cleanup(listener.Close)
	w.url = listener.URL
	w.tls = listener.Client().Transport.(*http.Transport).TLSClientConfig
	config := Config{
		PublicURL: w.url, GrantMethod: oauthv1.GrantHandlerAuto, ServiceAccountGrantMethod: oauthv1.GrantHandlerPrompt,
		Providers:   []login.Provider{{Name: "any", Challenge: true, Login: true, Mapping: mapping.Claim, Password: anyone.Allow{}}},
		SessionName: "ssn", SessionMaxAge: 5 * time.Minute, TokenMaxAge: 86400, CodeMaxAge: 300,
		Throttle:       throttle.New(),
		SessionSecrets: []session.Secret{{Authentication: strings.Repeat("a", 32), Encryption: strings.Repeat("b", 16)}},
	}
	if change != nil {
		change(&config)
	}
	minute := int32(60)
	w.server = &server{Config: config, report: w.note, common: common{kube: w.kube, accounts: corelisters.NewServiceAccountLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)), notices: newNotices(w.kube, w.note), objects: objects{
		users: w.users, tokens: w.tokens, codes: w.codes,
		identities:     storetest.New[*userv1.Identity](userv1.Resource("identities")),
		authorizations: storetest.New[*oauthv1.OAuthClientAuthorization](oauthv1.Resource("oauthclientauthorizations")),
		routes:         storetest.New[*routev1.Route](routev1.Resource("routes")),
		clients: storetest.New(oauthv1.Resource("oauthclients"), &oauthv1.OAuthClient{
			ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Secret: "the secret of demo", RedirectURIs: []string{app},
			GrantMethod: oauthv1.GrantHandlerPrompt, AccessTokenMaxAgeSeconds: &minute,
		}),
	}}}
	if err := w.complete(); err != nil {
		t.Fatal(err)
	}
	if err := ensureClients(t.Context(), w.objects.clients, w.url, w.url+"/console/", false); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for path, handler := range w.routes {
		mux.Handle(path, handler)
	}
	handler, w.handler = mux, mux
	return w
}

// authenticator returns an authenticator for which every user is in the given groups.
func (w *fixture) authenticator(groups ...string) *token.Authenticator {
	return &token.Authenticator{Tokens: w.tokens, Users: w.users, Accounts: w.registry.Accounts, Groups: func(string) []string { return groups }}
}

func (w *fixture) note(err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.errors = append(w.errors, err.Error())
}

// browser returns a client that stores cookies and does not follow redirects.
func (w *fixture) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: w.tls}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// response is a server response with its body.
type response struct {
	*http.Response
	body string
}

// at returns the redirect target of the response, or an empty URL if the response is not a
// redirect.
func (s response) at() *url.URL {
	address, err := s.Location()
	if err != nil {
		return &url.URL{}
	}
	return address
}

// get requests a path on the server, or a URL, and accepts HTML as a browser does.
func (w *fixture) get(browser *http.Client, path string) response {
	return w.send(browser, http.MethodGet, path, nil, func(r *http.Request) { r.Header.Set("Accept", "text/html") })
}

func (w *fixture) post(browser *http.Client, path string, form url.Values) response {
	return w.send(browser, http.MethodPost, path, form, func(r *http.Request) { r.Header.Set("Accept", "text/html") })
}

func (w *fixture) send(browser *http.Client, method, path string, form url.Values, change func(*http.Request)) response {
	w.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = w.url + path
	}
	request, err := http.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(form.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(request)
	}
	resp, err := browser.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response{resp, string(body)}
}

var hiddenField = regexp.MustCompile(`<input type="(?:hidden|checkbox)" name="([a-z]+)" value="([^"]*)"`)

// fields returns the hidden fields of a page's form, as a browser sends them.
func (s response) fields() url.Values {
	unescape := strings.NewReplacer("&amp;", "&", "&#43;", "+", "&#34;", `"`)
	form := url.Values{}
	for _, field := range hiddenField.FindAllStringSubmatch(s.body, -1) {
		form.Add(field[1], unescape.Replace(field[2]))
	}
	return form
}

// logIn requests path, submits the login page that the server redirects to, and returns the
// response to the form.
func (w *fixture) logIn(browser *http.Client, user, path string) response {
	w.t.Helper()
	page := w.get(browser, w.get(browser, path).at().String())
	form := page.fields()
	form.Set("username", user)
	form.Set("password", "any")
	return w.post(browser, "/login", form)
}

// logOut requests the logout page at path, submits its form, and returns the response.
func (w *fixture) logOut(browser *http.Client, path string) response {
	w.t.Helper()
	return w.post(browser, "/logout", w.get(browser, path).fields())
}

// ask returns the path and query of a client's authorization request.
func ask(values url.Values) string { return "/oauth/authorize?" + values.Encode() }

// demo returns the parameters for a code request by the client `demo`.
func demo() url.Values {
	return url.Values{"client_id": {"demo"}, "response_type": {"code"}, "redirect_uri": {app}, "state": {"a state"}, "scope": {"user:info"}}
}

// approved logs in a user, approves the request, and returns the code for the client `demo`.
func (w *fixture) approved(values url.Values) string {
	w.t.Helper()
	browser := w.browser()
	response := w.get(browser, w.logIn(browser, "alice", ask(values)).at().String())
	page := w.get(browser, response.at().String())
	form := page.fields()
	form.Set("approve", "1")
	back := w.get(browser, w.post(browser, "/oauth/approve", form).at().String())
	code := back.at().Query().Get("code")
	if code == "" || !strings.HasPrefix(back.at().String(), app+"?") || back.at().Query().Get("state") != values.Get("state") {
		w.t.Fatalf("redirected to %s: %s", back.at(), back.body)
	}
	return code
}

// exchange exchanges a code for a token.
func (w *fixture) exchange(code string, change func(url.Values)) response {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {app}, "client_id": {"demo"}, "client_secret": {"the secret of demo"}}
	if change != nil {
		change(form)
	}
	return w.send(w.browser(), http.MethodPost, "/oauth/token", form, nil)
}
