package conformance

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/oauth/idp"
)

// Redirect tests a provider that redirects the browser to another server.
type Redirect struct {
	// Provider is the provider under test. Its server logs in every user as Want and redirects
	// back.
	Provider idp.Redirect
	// Client is the browser. It trusts the server's certificate.
	Client *http.Client
	// Secret is the client secret. No error and no URL may contain it.
	Secret string
	Want   idp.Identity
}

// callback is the URL that the server redirects the browser to.
const callback = "https://master.example.com:8443/oauth2callback/test"

// Test runs the tests.
func (c Redirect) Test(t *testing.T) {
	t.Run("a login returns the identity", c.login)
	t.Run("a code is valid only once", c.runOnce)
	t.Run("a denied login is rejected", func(t *testing.T) {
		got, err := c.Provider.AuthenticateCallback(t.Context(), callback, url.Values{"error": {"access_denied"}, "state": {"s"}})
		if got != nil || !errors.Is(err, idp.ErrRefused) {
			t.Errorf("identity %v, error %v", got, err)
		}
	})
	for name, query := range map[string]url.Values{
		"no code":          {},
		"a wrong code":     {"code": {"wrong"}},
		"a server's error": {"error": {"server_error"}, "error_description": {"<script>"}},
	} {
		t.Run(name+" is rejected", func(t *testing.T) {
			got, err := c.Provider.AuthenticateCallback(t.Context(), callback, query)
			if got != nil || err == nil || strings.Contains(err.Error(), c.Secret) || strings.Contains(err.Error(), "<script>") {
				t.Errorf("identity %v, error %v", got, err)
			}
		})
	}
}

// visit follows the redirects to the server and back to callback, and returns the query of the
// callback URL.
func (c Redirect) visit(t *testing.T) url.Values {
	t.Helper()
	const state = "a state/with?other&characters"
	start := c.Provider.StartURL(callback, state)
	if strings.Contains(start, c.Secret) {
		t.Error("the URL for the browser contains the client secret")
	}
	browser := *c.Client
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := browser.Get(start)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	back, err := response.Location()
	if err != nil {
		t.Fatalf("the server responds with %s instead of a redirect", response.Status)
	}
	if !strings.HasPrefix(back.String(), callback+"?") || back.Query().Get("state") != state {
		t.Errorf("the server redirects to %s", back)
	}
	return back.Query()
}

func (c Redirect) login(t *testing.T) {
	got, err := c.Provider.AuthenticateCallback(t.Context(), callback, c.visit(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Want, *got); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
}

func (c Redirect) runOnce(t *testing.T) {
	query := c.visit(t)
	if _, err := c.Provider.AuthenticateCallback(t.Context(), callback, query); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Provider.AuthenticateCallback(t.Context(), callback, query); got != nil || err == nil {
		t.Errorf("second use of the code: identity %v, error %v", got, err)
	}
}

// TestRefused tests a login by a user whom the provider rejects.
func (c Redirect) TestRefused(t *testing.T) {
	got, err := c.Provider.AuthenticateCallback(t.Context(), callback, c.visit(t))
	if got != nil || !errors.Is(err, idp.ErrRefused) {
		t.Errorf("identity %v, error %v, want a rejection", got, err)
	}
}
