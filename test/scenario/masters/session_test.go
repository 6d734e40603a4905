package masters

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// visitor sends the requests of a browser that shows the web console. The load balancer sends each
// request to a different master.
type visitor struct {
	t      *testing.T
	client http.Client
	url    string
}

func newVisitor(t *testing.T, b *balancer, masters []*kit.Cluster) *visitor {
	t.Helper()
	settings, err := rest.TLSConfigFor(masters[0].Config)
	if err != nil {
		t.Fatal(err)
	}
	// Remove the client certificate, because it would authenticate the requests as the
	// administrator.
	settings.Certificates, settings.GetClientCertificate = nil, nil
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	dials := 0
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		master := masters[dials%len(masters)]
		dials++
		return master.Dial(ctx, network, net.JoinHostPort(master.Address.String(), "8443"))
	}
	transport := &http.Transport{DialContext: dial, TLSClientConfig: settings, DisableKeepAlives: true}
	return &visitor{t, http.Client{Jar: jar, Transport: transport}, b.url()}
}

// send sends a request, follows redirects, and returns the last response with its body.
func (v *visitor) send(method, path, csrf string, form url.Values) (*http.Response, string) {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), method, v.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	request.Header.Set("X-CSRF-Token", csrf)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := v.client.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return response, string(body)
}

var hiddenField = regexp.MustCompile(`name="(csrf|then)" value="([^"]*)"`)

// checkSessions checks that a login to the console can use several masters, and that each master
// accepts the session. A logout at one master must end the session at all masters.
func checkSessions(t *testing.T, b *balancer, masters map[string]*kit.Cluster) {
	all := []*kit.Cluster{masters["first"].For(t), masters["second"].For(t), masters["third"].For(t)}
	password, err := os.ReadFile(all[0].Path("developer.password"))
	if err != nil {
		t.Fatal(err)
	}
	v := newVisitor(t, b, all)
	_, page := v.send(http.MethodGet, "/console/login", "", nil)
	form := url.Values{"username": {"developer"}, "password": {strings.TrimSpace(string(password))}}
	for _, field := range hiddenField.FindAllStringSubmatch(page, -1) {
		form.Set(field[1], html.UnescapeString(field[2]))
	}
	if end, _ := v.send(http.MethodPost, "/login", "", form); end.StatusCode != http.StatusOK || !strings.HasPrefix(end.Request.URL.Path, "/console") {
		t.Fatalf("the login ends at %s: %s", end.Request.URL, end.Status)
	}
	_, body := v.send(http.MethodGet, "/console/session", "", nil)
	var session struct{ CSRF string }
	if err := json.Unmarshal([]byte(body), &session); err != nil || session.CSRF == "" {
		t.Fatalf("the session is %s: %v", body, err)
	}
	const user = "/console/proxy/apis/user.openshift.io/v1/users/~"
	for range all {
		if got, body := v.send(http.MethodGet, user, session.CSRF, nil); got.StatusCode != http.StatusOK || !strings.Contains(body, `"developer"`) {
			t.Errorf("user of the session: %s: %s", got.Status, body)
		}
	}
	address, err := url.Parse(v.url)
	if err != nil {
		t.Fatal(err)
	}
	stolen := v.client.Jar.Cookies(address)
	if got, body := v.send(http.MethodPost, "/console/logout", session.CSRF, url.Values{}); got.StatusCode != http.StatusNoContent {
		t.Errorf("logout: %s: %s", got.Status, body)
	}
	for _, cookie := range stolen {
		cookie.Secure, cookie.Path = true, "/"
	}
	v.client.Jar.SetCookies(address, stolen)
	for range all {
		all[0].WaitFor("end of the session at a master", func(context.Context) error {
			if got, _ := v.send(http.MethodGet, user, session.CSRF, nil); got.StatusCode != http.StatusUnauthorized {
				return fmt.Errorf("the session continues after the logout: %s", got.Status)
			}
			return nil
		})
	}
}
