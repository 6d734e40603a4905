package router

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/router/environment"
	"github.com/slipway-platform/slipway/router/haproxy"
)

func TestStatisticsRequirePassword(t *testing.T) {
	for _, tt := range []struct {
		title, from    string
		user, password string // user and password in the settings
		name, secret   string // user and password in the request
		want           int
	}{
		{"this machine", "127.0.0.1:4711", "", "", "", "", http.StatusForbidden},
		{"this machine, guessed user", "127.0.0.1:4711", "", "", "admin", "", http.StatusForbidden},
		{"a pod", "10.128.0.7:4711", "", "", "", "", http.StatusForbidden},
		{"a pod, guessed user", "10.128.0.7:4711", "", "", "admin", "", http.StatusForbidden},
		{"correct password", "192.0.2.7:4711", "admin", "open", "admin", "open", http.StatusOK},
		{"wrong password", "127.0.0.1:4711", "admin", "open", "admin", "sesame", http.StatusUnauthorized},
	} {
		variables := map[string]string{}
		if tt.user != "" {
			variables = map[string]string{"STATS_USERNAME": tt.user, "STATS_PASSWORD": tt.password}
		}
		s, err := environment.Read(variables)
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.RemoteAddr = tt.from
		if tt.name != "" {
			request.SetBasicAuth(tt.name, tt.secret)
		}
		recorder := httptest.NewRecorder()
		access{settings: s}.guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(recorder, request)
		if recorder.Code != tt.want {
			t.Errorf("%s returns %d, want %d", tt.title, recorder.Code, tt.want)
		}
	}
}

// reviewClient returns a client whose token reviews accept the given tokens and whose access
// reviews allow one user.
func reviewClient(tokens map[string]string, allowed string) *fake.Clientset {
	reviews := fake.NewClientset()
	reviews.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		review.Status.User.Username = tokens[review.Spec.Token]
		review.Status.Authenticated = review.Status.User.Username != ""
		review.Status.User.Extra = map[string]authenticationv1.ExtraValue{"scopes.authorization.openshift.io": {"user:full"}}
		return true, review, nil
	})
	reviews.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*kubeauthorizationv1.SubjectAccessReview).DeepCopy()
		attributes := review.Spec.ResourceAttributes
		review.Status.Allowed = review.Spec.User == allowed && len(review.Spec.Extra) == 1 &&
			*attributes == kubeauthorizationv1.ResourceAttributes{Verb: "get", Group: "route.openshift.io", Resource: "routers", Subresource: "metrics", Name: "gold"}
		return true, review, nil
	})
	return reviews
}

func TestMetricsRequirePermission(t *testing.T) {
	s, err := environment.Read(map[string]string{"STATS_USERNAME": "admin", "STATS_PASSWORD": "open", "ROUTER_SERVICE_NAME": "gold"})
	if err != nil {
		t.Fatal(err)
	}
	user := access{settings: s, reviews: reviewClient(map[string]string{"a": "prometheus", "b": "bob"}, "prometheus")}
	for header, want := range map[string]int{"Bearer a": http.StatusOK, "Bearer b": http.StatusForbidden, "Bearer c": http.StatusUnauthorized, "": http.StatusUnauthorized} {
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.Header.Set("Authorization", header)
		recorder := httptest.NewRecorder()
		user.guardMetrics(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(recorder, request)
		if recorder.Code != want {
			t.Errorf("%q returns %d, want %d", header, recorder.Code, want)
		}
	}
}

// running represents an HAProxy process that responds and serves its statistics on a socket.
type running struct{ page string }

func (running) Alive() error           { return nil }
func (running) Stats() (string, error) { return "", errors.New("metrics are not requested") }
func (r running) Page() string         { return r.page }

func TestStoppingRouterIsAliveButNotReady(t *testing.T) {
	address := "127.0.0.1:" + freePort(t)
	var reason atomic.Pointer[string]
	reason.Store(new(string))
	socket := filepath.Join(t.TempDir(), "page")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	page := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page of "+r.URL.Path) })}
	go func() { _ = page.Serve(listener) }()
	defer page.Close()
	componenttest.Start(t, func(ctx context.Context, ready func()) error {
		ready()
		return serve(ctx, address, access{settings: read(t, map[string]string{"STATS_USERNAME": "admin", "STATS_PASSWORD": "open"})}, running{socket}, newMetrics(), func() string { return *reason.Load() })
	})
	get := func(path string) string {
		response, err := http.Get("http://admin:open@" + address + path)
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		content, _ := io.ReadAll(response.Body)
		return fmt.Sprint(response.StatusCode, " ", strings.TrimSpace(string(content)))
	}
	eventually.Equal(t, "readiness", func() string { return get("/healthz/ready") }, "200 ok")
	if got := get("/;csv"); got != "200 page of /;csv" {
		t.Errorf("the statistics as CSV are %q", got)
	}
	stopping := "the router is stopping"
	reason.Store(&stopping)
	if got := get("/healthz/ready"); got != "503 the router is stopping" {
		t.Errorf("a stopping router is ready: %s", got)
	}
	if got := get("/healthz"); got != "200 ok" {
		t.Errorf("a stopping router is not alive: %s", got)
	}
}

func TestRouterIsReadyWhenRoutesAreServed(t *testing.T) {
	s := session{Router: &Router{Settings: read(t, nil)}, engine: &haproxy.Engine{}, decisions: &decisions{seen: &view{}}}
	if got := s.unready(); got != "routes are not served yet" {
		t.Errorf("before the router has routes: %q", got)
	}
	s.first.Store(int64(s.engine.Set(&haproxy.Config{})))
	if got := s.unready(); got != "routes are not served yet" {
		t.Errorf("before HAProxy serves routes: %q", got)
	}
	s.first.Store(0) // ignore responses from before HAProxy had routes
	s.engine = &haproxy.Engine{}
	if got := s.unready(); got == "" {
		t.Error("the router is ready without a configuration")
	}
}

func TestRouterServesDuringShutdownDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session{Router: &Router{Settings: read(t, map[string]string{"ROUTER_GRACEFUL_SHUTDOWN_DELAY": "5s"})}}
		toldCtx, cancel := context.WithCancel(t.Context())
		ctx, end := s.untilLeft(toldCtx)
		defer end(nil)
		start := time.Now()
		cancel()
		synctest.Wait()
		if ctx.Err() != nil || !s.leaving.Load() {
			t.Error("the router stops serving")
		}
		<-ctx.Done()
		if duration := time.Since(start); duration != 5*time.Second {
			t.Errorf("the router still serves for %s", duration)
		}
	})
}

func TestRelayLog(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(socket, nil, 0o600); err != nil { // simulate a previous container's socket
		t.Fatal(err)
	}
	lines, out := io.Pipe()
	componenttest.Start(t, func(ctx context.Context, ready func()) error {
		ready()
		return RelayLog(ctx, socket, out)
	})
	var connection net.Conn
	eventually.True(t, "the socket", func() (ok bool) {
		var err error
		connection, err = net.Dial("unixgram", socket)
		return err == nil
	})
	defer connection.Close()
	read := bufio.NewReader(lines)
	for request, want := range map[string]string{"<142>Nov 22 haproxy: GET /\n": "Nov 22 haproxy: GET /\n", "no priority > at all": "no priority > at all\n"} {
		if _, err := connection.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}
		if got, err := read.ReadString('\n'); err != nil || got != want {
			t.Errorf("%q becomes %q, %v", request, got, err)
		}
	}
}
