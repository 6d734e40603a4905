package login

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

// cluster is a server on which the user alice has the password "secret" and can access the db and
// shop projects.
type cluster struct {
	*httptest.Server
	authority string // path of the CA certificate
	// authorize, if set, replaces the response to code requests with the correct password.
	authorize http.HandlerFunc
	// kerberos, if set, handles code requests instead of the password check.
	kerberos http.HandlerFunc

	token, challenge string // the access token, and the PKCE challenge
	attempts         int    // number of requests with a password
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{token: "sha256~issued"}
	mux := http.NewServeMux()
	c.Server = httptest.NewTLSServer(mux)
	t.Cleanup(c.Close)
	c.authority = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(c.authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	mux.HandleFunc("GET "+metadataPath, func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"issuer": c.URL, "authorization_endpoint": c.URL + "/oauth/authorize", "token_endpoint": c.URL + "/oauth/token"})
	})
	mux.HandleFunc("GET /oauth/authorize", c.requestCode)
	mux.HandleFunc("POST /oauth/token", func(w http.ResponseWriter, r *http.Request) {
		hash := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if r.FormValue("code") != "code" || base64.RawURLEncoding.EncodeToString(hash[:]) != c.challenge {
			w.WriteHeader(http.StatusBadRequest)
			writeJSON(w, map[string]any{"error": "invalid_grant"})
			return
		}
		writeJSON(w, map[string]any{"access_token": c.token})
	})
	mux.HandleFunc("GET /apis/user.openshift.io/v1/users/~", c.asAlice(map[string]any{"apiVersion": "user.openshift.io/v1", "kind": "User", "metadata": map[string]any{"name": "alice"}}))
	project := func(name string) map[string]any {
		return map[string]any{"apiVersion": "project.openshift.io/v1", "kind": "Project", "metadata": map[string]any{"name": name}}
	}
	mux.HandleFunc("GET /apis/project.openshift.io/v1/projects", c.asAlice(map[string]any{
		"apiVersion": "project.openshift.io/v1", "kind": "ProjectList", "items": []any{project("shop"), project("db")},
	}))
	mux.HandleFunc("DELETE /apis/oauth.openshift.io/v1/oauthaccesstokens/"+tokenName(c.token), func(w http.ResponseWriter, r *http.Request) {
		c.asAlice(map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Success"})(w, r)
		c.token = "deleted"
	})
	return c
}

func writeJSON(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object)
}

// asAlice returns a handler that responds with object if the request contains alice's token.
func (c *cluster) asAlice(object any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+c.token {
			w.WriteHeader(http.StatusUnauthorized)
			writeJSON(w, map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 401, "reason": "Unauthorized", "message": "Unauthorized"})
			return
		}
		writeJSON(w, object)
	}
}

func (c *cluster) requestCode(w http.ResponseWriter, r *http.Request) {
	user, password, ok := r.BasicAuth()
	if ok {
		c.attempts++
	}
	if c.kerberos != nil {
		c.kerberos(w, r)
		return
	}
	if r.Header.Get("X-CSRF-Token") == "" || user != "alice" || password != "secret" {
		w.Header().Set("WWW-Authenticate", `Basic realm="openshift"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if c.challenge = r.FormValue("code_challenge"); c.authorize != nil {
		c.authorize(w, r)
		return
	}
	http.Redirect(w, r, r.FormValue("redirect_uri")+"?code=code", http.StatusFound)
}

// run runs `oc login` or another command of this package. input is the command's standard input.
func (c *cluster) run(t *testing.T, kubeconfig, input string, args ...string) (out, errOut, failure string) {
	t.Helper()
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("SLIPWAY_DATA_DIR", t.TempDir())
	return objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
		streams.In = strings.NewReader(input)
		root := &cobra.Command{Use: "oc"}
		flags := root.PersistentFlags()
		for _, name := range []string{"token", "server", "certificate-authority", "namespace", "kubeconfig"} {
			flags.String(name, "", "")
		}
		flags.Bool("insecure-skip-tls-verify", false, "")
		config := genericclioptions.NewConfigFlags(true)
		config.KubeConfig = &kubeconfig
		root.AddCommand(New(nil, streams), NewLogout(util.NewFactory(config), streams))
		return root
	}, args...)
}

func TestLogin(t *testing.T) {
	for _, test := range []struct {
		name  string
		args  []string // arguments after the server
		input string
		// trusted makes the test pass --certificate-authority. project is the kubeconfig's current
		// project after the login.
		trusted     bool
		out, errOut string // parts of standard output and standard error
		project     string
		failure     string // part of the message
	}{
		{name: "password of a flag", trusted: true, args: []string{"-u", "alice", "-p", "secret"}, out: "Login successful.\n", project: "db"},
		{name: "prompts", trusted: true, input: "alice\nsecret\n", out: "Welcome!", errOut: "(openshift)\nUsername: Password: ", project: "db"},
		{name: "token", trusted: true, args: []string{"--token=sha256~issued"}, out: `as "alice" using the token provided`, project: "db"},
		{name: "project", trusted: true, args: []string{"-u", "alice", "-p", "secret", "--namespace=shop"}, project: "shop"},
		{name: "foreign project", trusted: true, args: []string{"-u", "alice", "-p", "secret", "--namespace=x"}, errOut: `Warning: you are not a member of project "x"`, project: "db"},
		{name: "wrong password", trusted: true, args: []string{"-u", "alice", "-p", "guess"}, failure: "Login failed (401 Unauthorized)"},
		{name: "wrong token", trusted: true, args: []string{"--token=guess"}, failure: "The token provided is invalid or expired."},
		{name: "no password and no terminal", trusted: true, args: []string{"-u", "alice"}, failure: "input is required, but there is no terminal"},
		{name: "token and password", args: []string{"--token=a", "-p", "b"}, failure: "mutually exclusive"},
		{name: "unknown authority", args: []string{"-u", "alice", "-p", "secret"}, input: "n\n", errOut: "signed by an unknown authority", failure: "--certificate-authority"},
		{name: "unknown authority that the user accepts", args: []string{"-u", "alice", "-p", "secret"}, input: "y\n", out: "Login successful.", project: "db"},
		{name: "any certificate", args: []string{"-u", "alice", "-p", "secret", "--insecure-skip-tls-verify"}, out: "Login successful.", project: "db"},
		{name: "missing authority", args: []string{"--certificate-authority=/nonexistent"}, failure: "read certificate authority: open /nonexistent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t)
			kubeconfig := filepath.Join(t.TempDir(), "config")
			args := append([]string{"login", c.URL}, test.args...)
			if test.trusted {
				args = append(args, "--certificate-authority="+c.authority)
			}
			out, errOut, failure := c.run(t, kubeconfig, test.input, args...)
			if test.failure == "" && failure != "" || !strings.Contains(failure, test.failure) {
				t.Fatalf("the login failed with %q, want %q", failure, test.failure)
			}
			if !strings.Contains(out, test.out) || !strings.Contains(errOut, test.errOut) {
				t.Errorf("the login prints %q and %q", out, errOut)
			}
			content, err := os.ReadFile(kubeconfig)
			if test.failure != "" {
				if err == nil {
					t.Errorf("the failed login saves %s", content)
				}
				return
			}
			config, err := clientcmd.LoadFromFile(kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			current := config.Contexts[config.CurrentContext]
			if current == nil || current.Namespace != test.project || config.AuthInfos[current.AuthInfo].Token != c.token {
				t.Errorf("the login saves %s", content)
			}
		})
	}
}

func TestLoginAgainUsesTheSavedToken(t *testing.T) {
	c := newCluster(t)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	_, _, failure := c.run(t, kubeconfig, "", "login", c.URL, "-u", "alice", "-p", "secret", "--namespace=shop", "--certificate-authority="+c.authority)
	if failure != "" {
		t.Fatal(failure)
	}
	for _, args := range [][]string{{"login"}, {"login", "-u", "alice"}} {
		out, _, failure := c.run(t, kubeconfig, "", args...)
		if failure != "" || !strings.Contains(out, "using existing credentials") || !strings.Contains(out, `Using project "shop"`) {
			t.Errorf("%v prints %q and fails with %q", args, out, failure)
		}
	}
	if c.attempts != 1 {
		t.Errorf("%d requests have the password, want 1", c.attempts)
	}
}

func TestLogoutDeletesTheToken(t *testing.T) {
	c := newCluster(t)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	issued := c.token
	if _, _, failure := c.run(t, kubeconfig, "", "login", c.URL, "-u", "alice", "-p", "secret", "--certificate-authority="+c.authority); failure != "" {
		t.Fatal(failure)
	}
	out, _, failure := c.run(t, kubeconfig, "", "logout")
	if want := "Logged \"alice\" out on \"" + c.URL + "\"\n"; failure != "" || out != want {
		t.Errorf("the logout prints %q and fails with %q, want %q", out, failure, want)
	}
	if content, err := os.ReadFile(kubeconfig); err != nil || strings.Contains(string(content), issued) {
		t.Errorf("the kubeconfig still contains the token: %v", err)
	}
	if c.token == issued {
		t.Error("the server still accepts the token")
	}
	if _, _, failure := c.run(t, kubeconfig, "", "logout"); !strings.Contains(failure, "You must have a token") {
		t.Errorf("the second logout fails with %q", failure)
	}
}

// TestLoginRejectsServer logs in to OAuth servers whose responses are broken or malicious.
func TestLoginRejectsServer(t *testing.T) {
	stolen := ""
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, stolen, _ = r.BasicAuth()
		w.Header().Set("WWW-Authenticate", `Basic realm="elsewhere"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer elsewhere.Close()
	redirect := func(query string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+query, http.StatusFound)
		}
	}
	for _, test := range []struct {
		name      string
		authorize http.HandlerFunc
		failure   string
	}{
		{"another host requests the password", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "401 Unauthorized"},
		{"endless redirects", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.String(), http.StatusFound) }, "redirected more than 10 times"},
		{"no code", redirect("state=1"), "sent no code"},
		{"another code", redirect("code=other"), "invalid_grant"},
		{"an error", redirect(url.Values{"error": {"access_denied"}, "error_description": {"grant it first"}}.Encode()), "Login failed (access_denied)\ngrant it first"},
		{"redirect without address", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) }, "sent a redirect without a valid address"},
		{"failure", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no database", http.StatusBadGateway) }, "502 Bad Gateway: no database"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t)
			c.authorize = test.authorize
			_, _, failure := c.run(t, filepath.Join(t.TempDir(), "config"), "", "login", c.URL, "-u", "alice", "-p", "secret", "--certificate-authority="+c.authority)
			if !strings.Contains(failure, test.failure) {
				t.Errorf("the login failed with %q, want %q", failure, test.failure)
			}
		})
	}
	if stolen != "" {
		t.Errorf("the client sends the password %q to another host", stolen)
	}
}

func TestNormalizeServer(t *testing.T) {
	for text, want := range map[string]string{
		"host": "https://host:443", "host:8443": "https://host:8443", "http://host": "http://host:80", "https://host/path?q#f": "https://host:443",
		"https://user:password@host": "https://host:443", "[fd00::1]:8443": "https://[fd00::1]:8443",
		"": "", "host:0": "", "host:65536": "", "ftp://host": "", "https://": "", "a b": "",
	} {
		if got, err := normalizeServer(text); got != want || (err == nil) == (want == "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
