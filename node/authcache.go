package node

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/server"
)

// CacheSizes contains the maximum numbers of API server responses that the kubelet caches
// (authConfig.authenticationCacheSize and authorizationCacheSize). 0 means upstream's cache, whose
// size cannot be set.
type CacheSizes struct{ Authentication, Authorization int }

// boundedAuth wraps the kubelet's authentication and authorization with caches of limited size. If
// a cache is full, it evicts the least recently used response.
type boundedAuth struct {
	server.AuthInterface
	// users caches the responses for tokens, and decisions caches the responses for requests. A
	// cache is nil if its size is not set. The keys are hashes.
	users, decisions                *cache.LRUExpireCache
	userTTL, allowedTTL, refusedTTL time.Duration
}

// bound adds caches to the authentication and authorization that build returns, and disables
// upstream's caches.
func bound(sizes CacheSizes, config kubeletconfig.KubeletConfiguration, build func(kubeletconfig.KubeletConfiguration) (server.AuthInterface, error)) (server.AuthInterface, error) {
	bounded := &boundedAuth{
		userTTL:    config.Authentication.Webhook.CacheTTL.Duration,
		allowedTTL: config.Authorization.Webhook.CacheAuthorizedTTL.Duration, refusedTTL: config.Authorization.Webhook.CacheUnauthorizedTTL.Duration,
	}
	if sizes.Authentication > 0 {
		bounded.users = cache.NewLRUExpireCache(sizes.Authentication)
		config.Authentication.Webhook.CacheTTL = metav1.Duration{}
	}
	if sizes.Authorization > 0 {
		bounded.decisions = cache.NewLRUExpireCache(sizes.Authorization)
		config.Authorization.Webhook.CacheAuthorizedTTL, config.Authorization.Webhook.CacheUnauthorizedTTL = metav1.Duration{}, metav1.Duration{}
	}
	var err error
	bounded.AuthInterface, err = build(config)
	return bounded, err
}

// AuthenticateRequest authenticates a request. It caches the users that tokens identify. A client
// certificate takes precedence over a token, and needs no cache.
func (b *boundedAuth) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	header := r.Header.Get("Authorization")
	if b.users == nil || header == "" || r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return b.AuthInterface.AuthenticateRequest(r)
	}
	key := sha256.Sum256([]byte(header))
	if cached, ok := b.users.Get(key); ok {
		r.Header.Del("Authorization") // as upstream does, so that no handler uses the token
		return cached.(*authenticator.Response), true, nil
	}
	resp, ok, err := b.AuthInterface.AuthenticateRequest(r)
	if ok && err == nil {
		b.users.Add(key, resp, b.userTTL)
	}
	return resp, ok, err
}

// decision is a response from the API server.
type decision struct {
	decision authorizer.Decision
	reason   string
}

// Authorize authorizes a request. It caches all responses except errors.
func (b *boundedAuth) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	key, ok := requestKey(a)
	if b.decisions == nil || !ok {
		return b.AuthInterface.Authorize(ctx, a)
	}
	if cached, ok := b.decisions.Get(key); ok {
		response := cached.(decision)
		return response.decision, response.reason, nil
	}
	response, reason, err := b.AuthInterface.Authorize(ctx, a)
	if err != nil {
		return response, reason, err
	}
	ttl := b.refusedTTL
	if response == authorizer.DecisionAllow {
		ttl = b.allowedTTL
	}
	b.decisions.Add(key, decision{response, reason}, ttl)
	return response, reason, nil
}

// requestKey returns a hash of the attributes that determine the decision on a request.
func requestKey(a authorizer.Attributes) ([sha256.Size]byte, bool) {
	user := a.GetUser()
	if user == nil {
		return [sha256.Size]byte{}, false
	}
	content, err := json.Marshal([]any{
		user.GetName(), user.GetUID(), user.GetGroups(), user.GetExtra(), a.GetVerb(), a.IsResourceRequest(), a.GetPath(),
		strings.Join([]string{a.GetNamespace(), a.GetAPIGroup(), a.GetAPIVersion(), a.GetResource(), a.GetSubresource(), a.GetName()}, "/"),
	})
	return sha256.Sum256(content), err == nil
}
