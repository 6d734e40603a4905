package registry

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
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

func TestLoginKeepsOtherContentOfFile(t *testing.T) {
	const auth = "dXNlcjp0b2tlbg==" // user:token
	for _, tt := range []struct{ name, before, want, err string }{
		{"no file", "", `{"auths":{"registry:5000":{"auth":"` + auth + `"}}}`, ""},
		{"no accounts", `{"psFormat":"table"}`, `{"auths":{"registry:5000":{"auth":"` + auth + `"}},"psFormat":"table"}`, ""},
		{
			"other account and an old one", `{"auths":{"quay.example.com":{"auth":"x"},"registry:5000":{"auth":"y","email":"z"}}}`,
			`{"auths":{"quay.example.com":{"auth":"x"},"registry:5000":{"auth":"` + auth + `"}}}`, "",
		},
		{"damaged file", "{", "{", "unexpected end"},
		{"null", "null", "null", "the file contains null"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "new", "config.json")
			if tt.before != "" {
				if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(tt.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			err := (&registryLogin{file: file, host: "registry:5000", out: &out}).write("user", "token")
			if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), file)) {
				t.Errorf("got error %v, want %q and the file", err, tt.err)
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var compact bytes.Buffer
			if err := json.Compact(&compact, content); err != nil {
				compact.Write(content)
			}
			if got := compact.String(); got != tt.want {
				t.Errorf("the file contains %s, want %s", got, tt.want)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file has the mode %v, error %v", info.Mode(), err)
			}
		})
	}
}

func TestLoginPrintsCredentials(t *testing.T) {
	var out strings.Builder
	if err := (&registryLogin{file: "-", host: "registry:5000", out: &out}).write("user", "token"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "dXNlcjp0b2tlbg==") || strings.Contains(out.String(), "Saved") {
		t.Errorf("got %s", out.String())
	}
}

func TestLoginNeedsToken(t *testing.T) {
	err := (&registryLogin{host: "registry:5000", skipCheck: true}).run(t.Context(), &rest.Config{}, "shop")
	if err == nil || !strings.Contains(err.Error(), "use oc login, or --service-account") {
		t.Errorf("got error %v", err)
	}
}

func TestDirectAddressIsOnHostOfAPIServer(t *testing.T) {
	for _, tt := range []struct{ server, internal, want string }{
		{"https://master.example.com:8443", "docker-registry.default.svc:5000", "master.example.com:5000"},
		{"https://[2001:db8::1]:8443", "docker-registry.default.svc:5000", "[2001:db8::1]:5000"},
		{"https://master.example.com", "registry", "registry"},
		{"://", "registry:5000", "registry:5000"},
		{"", "registry:5000", "registry:5000"},
	} {
		if got := directAddress(tt.server, tt.internal); got != tt.want {
			t.Errorf("%q, %q: got %q, want %q", tt.server, tt.internal, got, tt.want)
		}
	}
}

func TestCheckReportsUnhealthyRegistry(t *testing.T) {
	status := http.StatusServiceUnavailable
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || r.Header.Get("Authorization") != "" {
			t.Errorf("request of %s with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "https://")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := &rest.Config{BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	info := &registryInfo{internal: true, check: true}
	for _, tt := range []struct {
		name   string
		config *rest.Config
		status int
		want   string
	}{
		{"healthy", config, http.StatusOK, host},
		{"unhealthy", config, http.StatusServiceUnavailable, "503"},
		{"unknown authority", &rest.Config{}, http.StatusOK, "certificate"},
	} {
		status = tt.status
		var out strings.Builder
		got := ""
		if err := info.run(t.Context(), tt.config, registryNames{internal: host}, &out); err != nil {
			got = err.Error()
		} else {
			got = out.String()
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
