package registry

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestLoginChecksCredentials(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); r.URL.Path == "/v2/" && password == "good" {
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "https://")
	for name, tt := range map[string]struct {
		token, want string
		login       registryLogin
	}{
		"good":              {"good", "Saved credentials", registryLogin{host: host, insecure: true}},
		"bad":               {"bad", "401", registryLogin{host: host, insecure: true}},
		"unverified server": {"good", "unable to check your credentials", registryLogin{host: host}},
		"unknown host":      {"good", "unable to check your credentials", registryLogin{host: "registry.invalid"}},
		"unchecked":         {"bad", "Saved credentials", registryLogin{host: "registry.invalid", skipCheck: true}},
	} {
		var out strings.Builder
		login := tt.login
		login.file, login.out, login.errOut = filepath.Join(t.TempDir(), "config.json"), &out, &out
		err := login.run(t.Context(), &rest.Config{Host: server.URL, BearerToken: tt.token}, "shop")
		got := out.String()
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestInfoPrintsOneAddress(t *testing.T) {
	var out strings.Builder
	names := registryNames{internal: "inside:5000", public: "outside"}
	if err := (&registryInfo{internal: true, public: true}).run(t.Context(), nil, names, &out); err == nil || !strings.Contains(err.Error(), "only one of --internal or --public") {
		t.Errorf("both addresses: %v", err)
	}
	if err := (&registryInfo{internal: true}).run(t.Context(), nil, names, &out); err != nil || out.String() != "inside:5000\n" {
		t.Errorf("internal address %q, %v", out.String(), err)
	}
}

func TestPreferredAddressResolves(t *testing.T) {
	const unknown = "docker-registry.nowhere.invalid:5000"
	for name, tt := range map[string]struct {
		names registryNames
		want  string
	}{
		"public":   {registryNames{internal: "127.0.0.1:5000", public: "localhost", direct: "192.0.2.1:5000"}, "localhost"},
		"internal": {registryNames{internal: "127.0.0.1:5000", public: "route.nowhere.invalid", direct: "192.0.2.1:5000"}, "127.0.0.1:5000"},
		"direct":   {registryNames{internal: unknown, direct: "192.0.2.1:5000"}, "192.0.2.1:5000"},
	} {
		if got := tt.names.preferred(t.Context()); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	for server, want := range map[string]string{
		"https://master.example.com:8443": "master.example.com:5000", "https://[2001:db8::1]:8443": "[2001:db8::1]:5000", "": unknown,
	} {
		if got := directAddress(server, unknown); got != want {
			t.Errorf("direct address of %q is %q, want %q", server, got, want)
		}
	}
}
