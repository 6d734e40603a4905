package detect

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/outbound"
)

// builders allows users to create build configurations in the shop project, and to read the
// project's secrets except hidden.
var builders = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	builds := a.GetVerb() == "create" && a.GetAPIGroup() == "build.openshift.io" && a.GetResource() == "buildconfigs"
	reads := a.GetVerb() == "get" && a.GetAPIGroup() == "" && a.GetResource() == "secrets" && a.GetName() != "hidden"
	if a.GetNamespace() == "shop" && (builds || reads) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
})

// ask sends a user's request to the handler.
func ask(t *testing.T, handler http.Handler, name string, query url.Values) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path+"?"+query.Encode(), nil)
	r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: name}))
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	return recorder
}

func handlerOf(t *testing.T, policy outbound.Policy, objects ...runtime.Object) http.Handler {
	t.Helper()
	hooks, err := Feature(outbound.New(policy)).Hooks(apiserver.Deps{Authorizer: builders, Kube: fake.NewClientset(objects...)})
	if err != nil {
		t.Fatal(err)
	}
	return hooks.Handlers[0]
}

// repository returns a handler that serves a repository named app with git-http-backend.
func repository(t *testing.T) http.Handler {
	t.Helper()
	root := t.TempDir()
	for _, file := range []string{"web/requirements.txt", "Dockerfile"} {
		path := filepath.Join(root, "app", file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message=x"}} {
		if output, err := exec.Command("git", append([]string{"-C", filepath.Join(root, "app")}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, output)
		}
	}
	return &cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}, Stderr: t.Output()}
}

func TestContentOfRepositoryIsDetected(t *testing.T) {
	server := httptest.NewServer(repository(t))
	t.Cleanup(server.Close)
	handler := handlerOf(t, outbound.Policy{AllowedHosts: []string{strings.TrimPrefix(server.URL, "http://")}})
	for dir, want := range map[string]Source{"": {Dockerfile: true}, "web": {Language: "python"}} {
		response := ask(t, handler, "ann", url.Values{"namespace": {"shop"}, "uri": {server.URL + "/app/.git"}, "dir": {dir}})
		var got Source
		if err := json.Unmarshal(response.Body.Bytes(), &got); err != nil || got != want {
			t.Errorf("%q contains %+v, %v: %s", dir, got, err, response.Body)
		}
	}
}

func TestPrivateRepositoryIsReadWithSourceSecret(t *testing.T) {
	git := repository(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		login, password, _ := r.BasicAuth()
		if password != "opens3same" || login != "ann" && login != "token" {
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		git.ServeHTTP(w, r)
	}))
	// Discard the server's log, which would contain the handshakes that clients abort.
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	secret := func(name string, data map[string]string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string][]byte{"ca.crt": authority}}
		for key, value := range data {
			s.Data[key] = []byte(value)
		}
		return s
	}
	handler := handlerOf(t, outbound.Policy{AllowedHosts: []string{strings.TrimPrefix(server.URL, "https://")}},
		secret("password", map[string]string{"username": "ann", "password": "opens3same\n"}), secret("token", map[string]string{"token": "opens3same"}),
		secret("old", map[string]string{"username": "ann", "password": "old"}), secret("authority", nil),
		secret("broken", map[string]string{"ca.crt": "x"}), secret("hidden", map[string]string{"password": "opens3same"}))
	for name, want := range map[string]string{
		"password": `{"language":"","dockerfile":true}`, "token": `{"language":"","dockerfile":true}`,
		"old": "the server rejects the user and the password in the secret", "authority": "is not public", "": "the server cannot be reached",
		"broken": `ca.crt in secret "broken" contains no certificate`, "none": `secrets "none" not found`, "hidden": `user "ann" cannot get secrets in project "shop"`,
	} {
		response := ask(t, handler, "ann", url.Values{"namespace": {"shop"}, "uri": {server.URL + "/app/.git"}, "secret": {name}})
		if !strings.Contains(response.Body.String(), want) || strings.Contains(response.Body.String(), "opens3same") {
			t.Errorf("with secret %q: %d %s", name, response.Code, response.Body)
		}
	}
}

func TestSourceIsOnlyReadForUsersWhoCanBuild(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server received a request") }))
	t.Cleanup(server.Close)
	allowed := handlerOf(t, outbound.Policy{AllowedHosts: []string{strings.TrimPrefix(server.URL, "http://")}})
	if got := ask(t, allowed, "ann", url.Values{"namespace": {"other"}, "uri": {server.URL}}); got.Code != http.StatusForbidden {
		t.Errorf("the project of another user: %d %s", got.Code, got.Body)
	}
	if got := ask(t, handlerOf(t, outbound.Policy{}), "ann", url.Values{"namespace": {"shop"}, "uri": {server.URL}}); got.Code != http.StatusBadGateway || !strings.Contains(got.Body.String(), "must not reach") {
		t.Errorf("a server on the host: %d %s", got.Code, got.Body)
	}
}

func TestConcurrentReadsAreLimited(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	t.Cleanup(server.Close)
	handler := handlerOf(t, outbound.Policy{AllowedHosts: []string{strings.TrimPrefix(server.URL, "http://")}})
	query := url.Values{"namespace": {"shop"}, "uri": {server.URL}}
	ended := make(chan struct{})
	for _, name := range []string{"ann", "bob", "eve", "joe"} {
		go func() {
			ask(t, handler, name, query)
			ended <- struct{}{}
		}()
		<-arrived
		if got := ask(t, handler, name, query); got.Code != http.StatusTooManyRequests {
			t.Errorf("the second read of %s: %d %s", name, got.Code, got.Body)
		}
	}
	if got := ask(t, handler, "tim", query); got.Code != http.StatusTooManyRequests {
		t.Errorf("a read during %d other reads: %d %s", maxReads, got.Code, got.Body)
	}
	close(release)
	for range maxReads {
		<-ended
	}
}
