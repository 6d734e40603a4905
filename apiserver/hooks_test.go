package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	genericserver "k8s.io/apiserver/pkg/server"
)

// words returns a handler that responds with the names of the filters that the request has passed,
// followed by word.
func words(word string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Header.Get("Way") + word))
	}
}

func filter(name string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Way", r.Header.Get("Way")+name+">")
			next.ServeHTTP(w, r)
		})
	}
}

func TestPublicHandlersHaveSeparateChain(t *testing.T) {
	s := &Server{hooks: Hooks{
		Filters: []func(http.Handler) http.Handler{filter("first"), filter("second")},
		Handlers: []Handler{
			{Path: "/login", Public: true, Handler: words("login")},
			{Path: "/oauth/", Public: true, Handler: words("oauth")},
			{Path: "/private", Handler: words("private")},
		},
	}}
	handler := s.Filter(words("chain"), filter("public"))
	for path, want := range map[string]string{
		"/login":           "first>second>public>login",
		"/login/x":         "first>second>chain",
		"/oauth/authorize": "first>second>public>oauth",
		"/private":         "first>second>chain",
		"/api//v1":         "first>second>chain",
	} {
		resp := httptest.NewRecorder()
		handler.ServeHTTP(resp, httptest.NewRequest(http.MethodGet, path, nil))
		if got := resp.Body.String(); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestFeatureAuthenticatorsRunFirst(t *testing.T) {
	knows := func(name string) authenticator.Request {
		return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
			return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, r.Header.Get("Token") != "", nil
		})
	}
	s := &Server{hooks: Hooks{Authenticators: []authenticator.Request{knows("ours")}}}
	config := &genericserver.Config{}
	config.Authentication.Authenticator = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{Name: "theirs"}}, true, nil
	})
	if err := s.Secure(config); err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	if got, _, _ := config.Authentication.Authenticator.AuthenticateRequest(request); got.User.GetName() != "theirs" {
		t.Errorf("without a token the user is %s", got.User.GetName())
	}
	request.Header.Set("Token", "x")
	got, _, _ := config.Authentication.Authenticator.AuthenticateRequest(request)
	if got.User.GetName() != "ours" || !slices.Contains(got.User.GetGroups(), user.AllAuthenticated) {
		t.Errorf("with a token the user is %s of %v", got.User.GetName(), got.User.GetGroups())
	}
}

func TestFeatureAuthorizersRunFirst(t *testing.T) {
	allow := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetVerb() == "delete" {
			return authorizer.DecisionDeny, "never", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	s := &Server{hooks: Hooks{Authorizers: []union.NamedAuthorizer{{AuthorizerName: "ours", Authorizer: allow}}}}
	config := &genericserver.Config{}
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	if err := s.Secure(config); err != nil {
		t.Fatal(err)
	}
	for verb, want := range map[string]authorizer.Decision{"get": authorizer.DecisionAllow, "delete": authorizer.DecisionDeny} {
		if got, _, _ := config.Authorization.Authorizer.Authorize(t.Context(), authorizer.AttributesRecord{Verb: verb}); got != want {
			t.Errorf("%s: %v, want %v", verb, got, want)
		}
	}
}

func TestHooksGetAuthorizerOfAllFeatures(t *testing.T) {
	var first Deps
	never := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionDeny, "never", nil
	})
	complete := &Authorizer{authorizerfactory.NewAlwaysAllowAuthorizer()}
	s := &Server{authorizer: complete, deps: Deps{Authorizer: complete}}
	s.config.Authorization.Authorizer = complete.Authorizer
	err := s.hook([]Feature{
		{Hooks: func(deps Deps) (Hooks, error) {
			first = deps
			return Hooks{}, nil
		}},
		{Hooks: func(Deps) (Hooks, error) {
			return Hooks{Authorizers: []union.NamedAuthorizer{{AuthorizerName: "never", Authorizer: never}}}, nil
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := first.Authorizer.Authorize(t.Context(), authorizer.AttributesRecord{}); got != authorizer.DecisionDeny {
		t.Errorf("the authorizer of the first feature's hooks decides %v", got)
	}
}

func TestPostStartHooksWithSameNameFail(t *testing.T) {
	feature := Feature{Hooks: func(Deps) (Hooks, error) {
		return Hooks{PostStart: map[string]genericserver.PostStartHookFunc{"wait": nil}}, nil
	}}
	err := (&Server{authorizer: &Authorizer{}}).hook([]Feature{feature, feature})
	if err == nil || !strings.Contains(err.Error(), `"wait"`) {
		t.Errorf("error is %v", err)
	}
}

func TestPathsOfOldNamesAreConcealed(t *testing.T) {
	s := &Server{legacy: legacy{groups: map[string]string{"routes": "route.openshift.io"}}}
	s.hooks.Conceal = []func(string) string{func(path string) string {
		if !strings.Contains(path, "/routes/") {
			return path
		}
		return strings.ReplaceAll(path, "treasure", "redacted")
	}}
	for _, resource := range []string{"routes", "oapi-routes"} {
		s.Filter(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if want := "/oapi/v1/namespaces/shop/routes/a/redacted"; r.URL.Path != want || r.RequestURI != want {
				t.Errorf("%s: the chain sees %s and %s", resource, r.URL.Path, r.RequestURI)
			}
			if full := withWholeURL(r).URL.Path; full != "/oapi/v1/namespaces/shop/routes/a/treasure" {
				t.Errorf("%s: the request is read as %s", resource, full)
			}
		}), nil).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/api/v1/namespaces/shop/"+resource+"/a/treasure", nil))
	}
}
