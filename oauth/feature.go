package oauth

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	oauthv1 "github.com/openshift/api/oauth/v1"
	routev1 "github.com/openshift/api/route/v1"
	userv1 "github.com/openshift/api/user/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/oauth/authorize"
	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/grant"
	"github.com/slipway-platform/slipway/oauth/login"
	"github.com/slipway-platform/slipway/oauth/mapping"
	"github.com/slipway-platform/slipway/oauth/membership"
	"github.com/slipway-platform/slipway/oauth/page"
	"github.com/slipway-platform/slipway/oauth/scope"
	"github.com/slipway-platform/slipway/oauth/session"
	"github.com/slipway-platform/slipway/oauth/store"
	"github.com/slipway-platform/slipway/oauth/token"
)

// Server is the API server feature that implements the OAuth server. Its configuration can change
// while it is running. A login that has started continues under the new configuration, because the
// login's state is in the browser and in the store.
type Server struct {
	first  Config
	report func(error)

	common
	groups   *membership.Groups
	activity *token.Activity
	roles    rbaclisters.ClusterRoleLister
	current  atomic.Pointer[server]
}

// common contains the server's state that does not depend on the configuration.
type common struct {
	objects objects
	kube    kubernetes.Interface
	// accounts lists service accounts from an informer's cache.
	accounts corelisters.ServiceAccountLister
	notices  *notices
}

// New returns a server with an initial configuration. report is called with request errors. The
// errors contain no secrets.
func New(config Config, report func(error)) *Server { return &Server{first: config, report: report} }

// Feature returns the feature to add to the API server.
func (s *Server) Feature() apiserver.Feature {
	return apiserver.Feature{Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
		hooks, err := s.hooks(deps)
		if err != nil {
			return apiserver.Hooks{}, fmt.Errorf("set up OAuth server: %w", err)
		}
		return hooks, nil
	}}
}

// Prepare builds all objects that depend on a configuration. After apply is called, new requests
// use the configuration. If Prepare returns an error, nothing changes. PublicURL, ConsoleURL,
// Metrics and Throttle keep their initial values.
func (s *Server) Prepare(config Config) (apply func(), err error) {
	config.PublicURL, config.ConsoleURL, config.Metrics, config.Throttle = s.first.PublicURL, s.first.ConsoleURL, s.first.Metrics, s.first.Throttle
	next := &server{Config: config, report: s.report, common: s.common}
	if err := next.complete(); err != nil {
		return nil, err
	}
	return func() { s.current.Store(next) }, nil
}

// server is the OAuth server for one configuration.
type server struct {
	Config
	common
	report func(error)

	registry *client.Registry
	issuer   *token.Issuer
	box      *session.Box
	pages    *page.Pages
	login    *login.Server
	grants   *authorize.Server
	routes   map[string]http.Handler
}

// objects contains the stores of the resources that the server reads and writes.
type objects struct {
	users          store.Objects[*userv1.User]
	identities     store.Objects[*userv1.Identity]
	clients        store.Objects[*oauthv1.OAuthClient]
	authorizations store.Objects[*oauthv1.OAuthClientAuthorization]
	codes          store.Objects[*oauthv1.OAuthAuthorizeToken]
	tokens         store.Objects[*oauthv1.OAuthAccessToken]
	routes         store.Objects[*routev1.Route]
}

// open connects the server to its resources and creates the group index.
func (s *Server) open(deps apiserver.Deps) (err error) {
	s.kube = deps.Kube
	s.notices = newNotices(s.kube, s.report)
	s.accounts = deps.Informers.Core().V1().ServiceAccounts().Lister()
	s.roles = deps.Informers.Rbac().V1().ClusterRoles().Lister()
	s.objects = objects{
		users:          store.Of[*userv1.User](deps.Stores, userv1.Resource("users")),
		identities:     store.Of[*userv1.Identity](deps.Stores, userv1.Resource("identities")),
		clients:        store.Of[*oauthv1.OAuthClient](deps.Stores, oauthv1.Resource("oauthclients")),
		authorizations: store.Of[*oauthv1.OAuthClientAuthorization](deps.Stores, oauthv1.Resource("oauthclientauthorizations")),
		codes:          store.Of[*oauthv1.OAuthAuthorizeToken](deps.Stores, oauthv1.Resource("oauthauthorizetokens")),
		tokens:         store.Of[*oauthv1.OAuthAccessToken](deps.Stores, oauthv1.Resource("oauthaccesstokens")),
		routes:         store.Of[*routev1.Route](deps.Stores, routev1.Resource("routes")),
	}
	s.groups, err = membership.New(func() (*registry.Store, bool) {
		store, ok := deps.Stores[userv1.Resource("groups")]
		return store, ok
	})
	return err
}

// complete creates everything that depends on the configuration.
func (s *server) complete() (err error) {
	if s.pages, err = page.New(s.Templates); err != nil {
		return err
	}
	sessions, err := session.New(s.SessionName, s.SessionMaxAge, s.SessionSecrets)
	if err != nil {
		return err
	}
	if s.box, err = session.NewBox(s.SessionSecrets); err != nil {
		return err
	}
	s.registry = &client.Registry{Clients: s.objects.clients, Accounts: &client.Accounts{
		Kube: s.kube, Cache: s.accounts, Routes: s.objects.routes, GrantMethod: s.ServiceAccountGrantMethod,
	}}
	s.issuer = &token.Issuer{
		Tokens: s.objects.tokens, Codes: s.objects.codes, Quota: &store.Quota[*oauthv1.OAuthAccessToken]{Objects: s.objects.tokens}, MaxAge: s.TokenMaxAge, CodeMaxAge: s.CodeMaxAge, InactivityTimeout: s.TokenInactivityTimeout,
	}
	for _, secret := range s.SessionSecrets {
		s.issuer.CodeKeys = append(s.issuer.CodeKeys, []byte(secret.Authentication))
	}
	s.login = &login.Server{
		Providers: s.Providers, Mapper: &mapping.Mapper{Users: s.objects.users, Identities: s.objects.identities}, Users: s.objects.users,
		Sessions: sessions, Pages: s.pages, PublicURL: s.PublicURL, AlwaysChoose: s.AlwaysShowProviderSelection, Metrics: s.Metrics,
		Throttle: s.Throttle, Report: s.report,
	}
	grants := &grant.Grants{
		Authorizations: s.objects.authorizations,
		Quota:          &store.Quota[*oauthv1.OAuthClientAuthorization]{Objects: s.objects.authorizations},
	}
	s.grants = &authorize.Server{
		Clients: s.registry, Login: s.login, Grants: grants,
		Issuer: s.issuer, Pages: s.pages, GrantMethod: s.GrantMethod, Notice: s.notices.add, Report: s.report,
	}
	s.routes, err = s.handlers()
	return err
}

func (s *Server) hooks(deps apiserver.Deps) (apiserver.Hooks, error) {
	if err := s.open(deps); err != nil {
		return apiserver.Hooks{}, err
	}
	first := &server{Config: s.first, report: s.report, common: s.common}
	if err := first.complete(); err != nil {
		return apiserver.Hooks{}, err
	}
	s.current.Store(first)
	s.activity = token.NewActivity(s.objects.tokens, first.registry, func() int32 { return s.current.Load().TokenInactivityTimeout }, s.report)
	tokenAuthenticator := &token.Authenticator{Tokens: s.objects.tokens, Users: s.objects.users, Accounts: first.registry.Accounts, Groups: s.groups.Of, Used: s.activity.Used}
	hooks := apiserver.Hooks{
		Authenticators: []authenticator.Request{bearertoken.New(tokenAuthenticator), websocket.NewProtocolAuthenticator(tokenAuthenticator)},
		Authorizers:    []union.NamedAuthorizer{{AuthorizerName: "scopes", Authorizer: &scope.Authorizer{ClusterRole: s.clusterRole}}},
		PostStart:      map[string]genericserver.PostStartHookFunc{"slipway/oauth": s.start},
	}
	for path := range first.routes {
		hooks.Handlers = append(hooks.Handlers, apiserver.Handler{Path: path, Public: true, Handler: s.route(path)})
	}
	return hooks, nil
}

// route returns a handler that serves a path with the current configuration.
func (s *Server) route(path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.current.Load().routes[path].ServeHTTP(w, r) })
}

// clusterRole returns a cluster role's rules.
func (s *Server) clusterRole(_ context.Context, name string) ([]rbacv1.PolicyRule, error) {
	role, err := s.roles.Get(name)
	if err != nil {
		return nil, err
	}
	return role.Rules, nil
}

// start runs the group cache and the workers that record token use and write notices, and creates
// the clients that every cluster has. It returns when the group cache has synced.
func (s *Server) start(hook genericserver.PostStartHookContext) error {
	go s.groups.Run(hook.Context)
	go s.activity.Run(hook.Context)
	go s.notices.Run(hook.Context)
	if err := ensureClients(hook.Context, s.objects.clients, s.first.PublicURL, s.first.ConsoleURL, s.first.SeveralServers); err != nil {
		return err
	}
	return s.groups.WaitReady(hook.Context)
}

// maxBody is the maximum length of a request body, in bytes. The longest valid body is a form with
// a password.
const maxBody = 64 << 10

// handlers returns the handlers, keyed by public path.
func (s *server) handlers() (map[string]http.Handler, error) {
	document, err := describe(s.PublicURL)
	if err != nil {
		return nil, err
	}
	people := &tokenPages{publicURL: s.PublicURL, clients: s.registry, issuer: s.issuer, pages: s.pages, report: s.report}
	exchange := &token.Endpoint{Clients: s.registry, Issuer: s.issuer, Report: s.report}
	handlers := map[string]http.Handler{
		authorize.Path:        http.HandlerFunc(s.grants.ServeAuthorize),
		authorize.ApprovePath: http.HandlerFunc(s.grants.ServeApprove),
		TokenPath:             exchange,
		requestPath:           http.HandlerFunc(people.serveRequest),
		displayPath:           http.HandlerFunc(people.serveDisplay),
		implicitPath:          http.HandlerFunc(people.serveImplicit),
		"/login":              http.HandlerFunc(s.login.ServeLogin),
		"/login/":             http.HandlerFunc(s.login.ServeLogin),
		login.LogoutPath:      http.HandlerFunc(s.login.ServeLogout),
		"/oauth2callback/":    http.HandlerFunc(s.login.ServeCallback),
		"/.well-known/oauth-authorization-server": serveMetadata(document),
	}
	for path, handler := range handlers {
		handlers[path] = guard(handler)
	}
	return handlers, nil
}

// guard sets security headers on every response and limits the length of request bodies.
func guard(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page.Harden(w.Header())
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		handler.ServeHTTP(w, r)
	})
}
