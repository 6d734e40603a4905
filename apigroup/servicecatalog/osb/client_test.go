package osb

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// client returns a client for a broker that responds with handler.
func client(t *testing.T, handler http.HandlerFunc) *Client {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &Client{URL: server.URL + "/path/", Transport: http.DefaultTransport, Authorization: "Bearer token", Timeout: time.Minute}
}

func TestRequestsHaveHeadersAndIdentifiers(t *testing.T) {
	var got *http.Request
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"operation": "task-1", "dashboard_url": "http://dashboard"}`)
	})
	user := &authenticationv1.UserInfo{Username: "alice", Groups: []string{"staff"}}
	result, err := c.Delete(t.Context(), Target{Instance: "a/b", Binding: "c", ServiceID: "s", PlanID: "p", Operation: "old", User: user})
	if err != nil || !result.Async || result.Operation != "task-1" {
		t.Fatalf("result %+v, %v", result, err)
	}
	if want := "/path/v2/service_instances/a%2Fb/service_bindings/c?accepts_incomplete=true&plan_id=p&service_id=s"; got.RequestURI != want || got.Method != http.MethodDelete {
		t.Errorf("request %s %s, want %s", got.Method, got.RequestURI, want)
	}
	for name, want := range map[string]string{
		"X-Broker-API-Version": "2.17", "Authorization": "Bearer token",
		"X-Broker-API-Originating-Identity": "kubernetes " + base64.StdEncoding.EncodeToString([]byte(`{"username":"alice","uid":"","groups":["staff"]}`)),
	} {
		if got.Header.Get(name) != want {
			t.Errorf("header %s is %q, want %q", name, got.Header.Get(name), want)
		}
	}
}

// TestClientInterpretsInvalidResponses checks whether the client assumes, after an invalid response
// to a provision request, that the broker might have created an instance.
func TestClientInterpretsInvalidResponses(t *testing.T) {
	tests := map[string]struct {
		respond   http.HandlerFunc
		ambiguous bool
		want      string
	}{
		"refuses":            {status(http.StatusBadRequest, `{"error": "X", "description": "bad size"}`), false, "Status: 400; ErrorMessage: X; Description: bad size"},
		"fails":              {status(http.StatusInternalServerError, "<html>"), true, "Status: 500"},
		"redirects":          {status(http.StatusFound, ""), false, "redirects"},
		"body is not JSON":   {status(http.StatusCreated, "hello"), true, "does not match its status"},
		"200 with a text":    {status(http.StatusOK, "hello"), true, "does not match its status"},
		"returns deep JSON":  {status(http.StatusCreated, strings.Repeat("[", 900_000)), true, "does not match its status"},
		"returns a gigabyte": {endless, true, "larger than"},
		"unknown status":     {status(299, "{}"), true, "Status: 299"},
		"long error":         {status(http.StatusForbidden, `{"description": "`+strings.Repeat("x", 100_000)+`"}`), false, "xxx..."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := client(t, tt.respond).Provision(t.Context(), Target{Instance: "a"}, &Provision{})
			var response *Error
			if !errors.As(err, &response) || response.Ambiguous() != tt.ambiguous || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %q, ambiguous %t", err, tt.want, tt.ambiguous)
			}
			if len(err.Error()) > 2*maxErrorText {
				t.Errorf("the error has %d characters", len(err.Error()))
			}
		})
	}
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// endless writes until the client disconnects.
func endless(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
	piece := []byte(`{"operation": "` + strings.Repeat("x", 1<<16))
	for {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

func TestRequestToHangingBrokerTimesOut(t *testing.T) {
	c := client(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c.Timeout = 10 * time.Millisecond
	if _, err := c.Catalog(t.Context()); err == nil {
		t.Error("a hanging broker returns a catalog")
	}
}

func TestLastOperation(t *testing.T) {
	respond := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("operation") {
		case "slow":
			w.Header().Set("Retry-After", "30")
			fmt.Fprint(w, `{"state": "in progress", "description": "half done"}`)
		case "forever":
			w.Header().Set("Retry-After", "99999999")
			fmt.Fprint(w, `{"state": "in progress"}`)
		case "gone":
			status(http.StatusGone, "{}")(w, r)
		default:
			fmt.Fprint(w, `{"state": "unheard-of"}`)
		}
	}
	c := client(t, respond)
	state, err := c.LastOperation(t.Context(), Target{Instance: "a", Operation: "slow"})
	if err != nil || state.State != InProgress || state.RetryAfter != 30*time.Second || state.Description != "half done" {
		t.Errorf("state %+v, %v", state, err)
	}
	if state, err := c.LastOperation(t.Context(), Target{Instance: "a", Operation: "forever"}); err != nil || state.RetryAfter != maxRetryAfter {
		t.Errorf("state %+v, %v", state, err)
	}
	var response *Error
	if _, err := c.LastOperation(t.Context(), Target{Instance: "a", Operation: "gone"}); !errors.As(err, &response) || !response.Gone() {
		t.Errorf("error %v", err)
	}
	if _, err := c.LastOperation(t.Context(), Target{Instance: "a"}); err == nil || !strings.Contains(err.Error(), "unheard-of") {
		t.Errorf("error %v", err)
	}
}
