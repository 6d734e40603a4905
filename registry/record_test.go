package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/apis/audit"
	auditing "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	genericserver "k8s.io/apiserver/pkg/server"

	"github.com/slipway-platform/slipway/apiserver"
)

// auditEvent is an audit backend that stores events in memory.
type auditEvent struct {
	auditing.Backend
	events []string
}

func (r *auditEvent) ProcessEvents(events ...*audit.Event) bool {
	for _, event := range events {
		if event.Stage != audit.StageRequestReceived {
			line := event.User.Username + " " + event.Verb + " " + event.RequestURI + " " + http.StatusText(int(event.ResponseStatus.Code))
			if event.ObjectRef != nil {
				line += " " + event.ObjectRef.Namespace + "/" + event.ObjectRef.Resource + "/" + event.ObjectRef.Name + "/" + event.ObjectRef.Subresource
			}
			r.events = append(r.events, line)
		}
	}
	return true
}

// recording returns a server that accepts the token "alice", and the server's audit log.
func recording(t *testing.T) (*server, *auditEvent) {
	t.Helper()
	log := &auditEvent{}
	config := &genericserver.Config{AuditBackend: log, AuditPolicyRuleEvaluator: policy.NewFakePolicyRuleEvaluator(audit.LevelMetadata, nil)}
	config.Authentication.Authenticator = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if r.TLS != nil || r.Header.Get("X-Remote-User") != "" {
			t.Error("the authenticators get more than the token")
		}
		switch r.Header.Get("Authorization") {
		case "Bearer alice":
			return &authenticator.Response{User: &user.DefaultInfo{Name: "alice"}}, true, nil
		case "Bearer broken":
			return nil, false, errors.New("the token is malformed")
		}
		return nil, false, nil
	})
	s := &server{Registry: &Registry{Recorder: &apiserver.Recorder{}}, shares: newShares()}
	s.Recorder.Use(config)
	return s, log
}

func TestAuditLogContainsUserAndAction(t *testing.T) {
	s, log := recording(t)
	tests := []struct{ name, method, path, token, want string }{
		{"an invalid token at a pull", "GET", "/v2/shop/app/manifests/latest", "wrong", " get /v2/shop/app/manifests/latest Unauthorized shop/imagestreams/app/layers"},
		{"a malformed token at a push", "PUT", "/v2/shop/app/manifests/latest", "broken", " update /v2/shop/app/manifests/latest Unauthorized shop/imagestreams/app/layers"},
		{"an invalid token at a deletion", "DELETE", "/v2/shop/app/manifests/sha256:" + strings.Repeat("a", 64), "wrong",
			" delete /v2/shop/app/manifests/sha256:" + strings.Repeat("a", 64) + " Unauthorized shop/imagestreams/app/layers"},
		{"the state of an upload", "PATCH", "/v2/shop/app/blobs/uploads/0?_state=signed&digest=x", "wrong", " update /v2/shop/app/blobs/uploads/0?digest=x Unauthorized shop/imagestreams/app/layers"},
		{"a prune", "POST", "/extensions/v2/garbage", "wrong", ""},
		{"no repository", "GET", "/v2/shop/", "alice", "alice get /v2/shop/ Not Found"},
		{"an unknown path", "GET", "/v2/shop/app/nothing", "alice", "alice get /v2/shop/app/nothing Not Found"},
		{"no credentials", "GET", "/v2/", "", "none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log.events = nil
			request := httptest.NewRequest(tt.method, tt.path, nil)
			request.TLS = nil
			request.Header.Set("X-Remote-User", "root")
			if tt.token != "" {
				request.SetBasicAuth("any", tt.token)
			}
			s.ServeHTTP(httptest.NewRecorder(), request)
			want := []string{tt.want}
			switch {
			case tt.want == "none":
				want = nil
			case tt.want == "":
				want = log.events
			}
			if strings.Join(log.events, "\n") != strings.Join(want, "\n") {
				t.Errorf("recorded\n%q\nwant\n%q", log.events, want)
			}
			for _, line := range log.events {
				if strings.Contains(line, "signed") {
					t.Errorf("recorded a state: %s", line)
				}
			}
		})
	}
}

// TestInvalidTokensDoNotDelayOthers sends one project's invalid pull secrets from the address of a
// node that also pulls for other projects.
func TestInvalidTokensDoNotDelayOthers(t *testing.T) {
	s, _ := recording(t)
	send := func(token string) int {
		request := httptest.NewRequest(http.MethodGet, "/openshift/nothing", nil)
		request.RemoteAddr = "192.0.2.1:4711"
		request.Header.Set("Authorization", "Bearer "+token)
		response := httptest.NewRecorder()
		s.ServeHTTP(response, request)
		return response.Code
	}
	for i := range 200 {
		if got := send(fmt.Sprint("wrong", i)); got != http.StatusUnauthorized {
			t.Fatalf("invalid token %d: %d", i, got)
		}
	}
	if got := send("alice"); got != http.StatusNotFound {
		t.Errorf("a valid token: %d", got)
	}
}
