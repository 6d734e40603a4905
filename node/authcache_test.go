package node

import (
	"context"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/server"
)

// remote counts the requests that reach the API server. It rejects the user "mallory".
type remote struct {
	server.AuthInterface
	config               kubeletconfig.KubeletConfiguration
	tokens, decisions    int
	lastHeader, lastUser string
}

func (r *remote) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	r.tokens++
	r.lastHeader = req.Header.Get("Authorization")
	return &authenticator.Response{User: &user.DefaultInfo{Name: r.lastHeader}}, r.lastHeader != "Bearer wrong", nil
}

func (r *remote) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.decisions++
	if r.lastUser = a.GetUser().GetName(); r.lastUser == "mallory" {
		return authorizer.DecisionNoOpinion, "unknown", nil
	}
	return authorizer.DecisionAllow, "", nil
}

func boundedRemote(t *testing.T, sizes CacheSizes) (server.AuthInterface, *remote) {
	t.Helper()
	api, hour := &remote{}, metav1.Duration{Duration: time.Hour}
	var config kubeletconfig.KubeletConfiguration
	config.Authentication.Webhook.CacheTTL, config.Authorization.Webhook.CacheAuthorizedTTL, config.Authorization.Webhook.CacheUnauthorizedTTL = hour, hour, hour
	auth, err := bound(sizes, config, func(changed kubeletconfig.KubeletConfiguration) (server.AuthInterface, error) {
		api.config = changed
		return api, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return auth, api
}

func TestAuthenticationCacheHasItsSize(t *testing.T) {
	auth, api := boundedRemote(t, CacheSizes{Authentication: 2})
	send := func(token string) *http.Request {
		t.Helper()
		req := request(t.Context())
		req.Header = http.Header{"Authorization": {"Bearer " + token}}
		resp, ok, err := auth.AuthenticateRequest(req)
		if err != nil || ok != (token != "wrong") || resp.User.GetName() != "Bearer "+token {
			t.Errorf("token %q: %v %t %v", token, resp, ok, err)
		}
		return req
	}
	for i, step := range []struct {
		token string
		want  int // number of requests to the API server so far
	}{{"a", 1}, {"b", 2}, {"a", 2}, {"c", 3}, {"a", 3}, {"b", 4}, {"wrong", 5}, {"wrong", 6}} {
		send(step.token)
		if api.tokens != step.want {
			t.Errorf("step %d: %d requests reach the API server, want %d", i, api.tokens, step.want)
		}
	}
	if req := send("b"); req.Header.Get("Authorization") != "" {
		t.Error("a cached token reaches the handlers")
	}
	webhook := api.config.Authentication.Webhook.CacheTTL.Duration
	if webhook != 0 || api.config.Authorization.Webhook.CacheAuthorizedTTL.Duration != time.Hour {
		t.Errorf("lifetimes of upstream's caches: %+v %+v", api.config.Authentication, api.config.Authorization)
	}
}

func TestAuthorizationCacheHasItsSize(t *testing.T) {
	auth, api := boundedRemote(t, CacheSizes{Authorization: 2})
	for i, step := range []struct {
		user, verb string
		want       int
	}{{"alice", "get", 1}, {"mallory", "get", 2}, {"alice", "get", 2}, {"mallory", "get", 2}, {"alice", "create", 3}, {"alice", "get", 4}} {
		got, _, err := auth.Authorize(t.Context(), authorizer.AttributesRecord{User: &user.DefaultInfo{Name: step.user}, Verb: step.verb, Resource: "nodes", ResourceRequest: true})
		if err != nil || (got == authorizer.DecisionAllow) != (step.user == "alice") || api.decisions != step.want {
			t.Errorf("step %d: %v %v after %d requests of the API server, want %d", i, got, err, api.decisions, step.want)
		}
	}
	if api.config.Authorization.Webhook.CacheAuthorizedTTL.Duration != 0 || api.config.Authentication.Webhook.CacheTTL.Duration != time.Hour {
		t.Errorf("lifetimes of upstream's caches: %+v %+v", api.config.Authentication, api.config.Authorization)
	}
}
