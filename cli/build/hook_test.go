package build

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	"k8s.io/client-go/rest"
)

func TestWebhookOfCurrentServerUsesItsCA(t *testing.T) {
	var got buildv1.GenericWebHookEvent
	var login string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		login = r.Header.Get("Authorization")
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	hook := Hook{URL: server.URL + "/webhooks/secret/generic", PostReceive: "-"}
	const received = "0000 1234 refs/heads/main\n"
	if err := hook.Call(t.Context(), strings.NewReader(received)); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server with an unknown certificate was called: %v", err)
	}
	hook.Server = &rest.Config{Host: server.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	if err := hook.Call(t.Context(), strings.NewReader(received)); err != nil {
		t.Fatal(err)
	}
	if got.Git == nil || len(got.Git.Refs) != 1 || got.Git.Refs[0].Commit != "1234" || login != "" {
		t.Errorf("the webhook got %+v, with credentials %q", got.Git, login)
	}
	hook.Server.Host = "https://other.example.com"
	if err := hook.Call(t.Context(), strings.NewReader(received)); err == nil {
		t.Error("another server is trusted like the current one")
	}
}
