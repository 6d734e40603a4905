package apiserver

import (
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/authentication/group"
	authentication "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorization "k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"

	"github.com/slipway-platform/slipway/internal/serverlimit"
)

// hook calls the Hooks function of each feature and merges the results.
func (s *Server) hook(features []Feature) error {
	s.hooks.PostStart = map[string]genericserver.PostStartHookFunc{}
	for _, feature := range features {
		if feature.Hooks == nil {
			continue
		}
		added, err := feature.Hooks(s.deps)
		if err != nil {
			return err
		}
		s.hooks.Authenticators = append(s.hooks.Authenticators, added.Authenticators...)
		s.hooks.Authorizers = append(s.hooks.Authorizers, added.Authorizers...)
		s.hooks.Filters = append(s.hooks.Filters, added.Filters...)
		s.hooks.Requests = append(s.hooks.Requests, added.Requests...)
		s.hooks.Conceal = append(s.hooks.Conceal, added.Conceal...)
		if added.LongRunning != nil {
			s.longRunning = append(s.longRunning, added.LongRunning)
		}
		s.hooks.Handlers = append(s.hooks.Handlers, added.Handlers...)
		for name, hook := range added.PostStart {
			if _, exists := s.hooks.PostStart[name]; exists {
				return fmt.Errorf("add post-start hook %q: a hook with this name exists", name)
			}
			s.hooks.PostStart[name] = hook
		}
	}
	if err := s.Secure(&s.config); err != nil {
		return err
	}
	s.authorizer.Authorizer = s.config.Authorization.Authorizer
	return nil
}

// Authorizer combines the server's authorizer with the authorizers of all features. Hooks and
// admission plugins receive it before New sets the embedded authorizer. They must not use
// upstream's authorizer alone, because it ignores token scopes.
type Authorizer struct{ authorizer.Authorizer }

// Secure prepends the features' authenticators and authorizers to a configuration's authenticators
// and authorizers. It also makes the configuration's rule resolver omit the permissions that the
// features' authorizers deny. A bearer token takes precedence over a client certificate. Secure
// returns an error if two authorizers have the same name.
func (s *Server) Secure(config *genericserver.Config) error {
	if len(s.hooks.Authenticators) > 0 {
		request := group.NewAuthenticatedGroupAdder(authentication.New(s.hooks.Authenticators...))
		config.Authentication.Authenticator = authentication.New(request, config.Authentication.Authenticator)
	}
	config.Authentication.Authenticator = tokenFirst{config.Authentication.Authenticator}
	if len(s.hooks.Authorizers) > 0 {
		upstream := authorization.NamedAuthorizer{AuthorizerName: "kubernetes", Authorizer: config.Authorization.Authorizer}
		all, err := authorization.New(append(slices.Clip(s.hooks.Authorizers), upstream)...)
		if err != nil {
			return err
		}
		config.Authorization.Authorizer = plainReasons{all}
		if config.RuleResolver != nil {
			config.RuleResolver = limitedRules{config.RuleResolver, s.hooks.Authorizers}
		}
	}
	return nil
}

// Filter wraps the API server's whole handler chain in the features' filters. Requests for public
// handlers use a separate chain, which public returns.
func (s *Server) Filter(chain http.Handler, public func(http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	handlers := 0
	for _, handler := range s.hooks.Handlers {
		if handler.Public {
			mux.Handle(handler.Path, handler)
			handlers++
		}
	}
	chain = s.redirectLegacy(s.concealPaths(chain)) // also conceals paths that were redirected
	filtered := chain
	if handlers > 0 {
		handler := public(mux)
		filtered = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// The multiplexer is used only to match paths. It would redirect paths that are not
			// clean, but the chain must serve these paths.
			if _, pattern := mux.Handler(r); pattern != "" {
				handler.ServeHTTP(w, r)
				return
			}
			chain.ServeHTTP(w, r)
		})
	}
	for _, filter := range slices.Backward(s.hooks.Filters) {
		filtered = filter(filtered)
	}
	return serverlimit.Handler(filtered)
}

// Attach adds the features' handlers that are not public, and their post-start hooks, to the front
// server of the delegation chain.
func (s *Server) Attach(front *genericserver.GenericAPIServer) error {
	for _, handler := range s.hooks.Handlers {
		switch {
		case handler.Public:
		case handler.Path[len(handler.Path)-1] == '/':
			front.Handler.NonGoRestfulMux.HandlePrefix(handler.Path, handler)
		default:
			front.Handler.NonGoRestfulMux.Handle(handler.Path, handler)
		}
	}
	for name, hook := range s.hooks.PostStart {
		if err := front.AddPostStartHook(name, hook); err != nil {
			return fmt.Errorf("add post-start hook %q: %w", name, err)
		}
	}
	return nil
}

// Correct adds the features' Requests and LongRunning hooks to a server configuration.
func (s *Server) Correct(config *genericserver.Config) {
	resolver := config.RequestInfoResolver
	if resolver == nil {
		resolver = genericserver.NewRequestInfoResolver(config)
	}
	config.RequestInfoResolver = corrected{resolver, s.hooks.Requests}
	upstream := config.LongRunningFunc
	config.LongRunningFunc = func(r *http.Request, info *request.RequestInfo) bool {
		return upstream(r, info) || slices.ContainsFunc(s.longRunning, func(long func(*request.RequestInfo) bool) bool { return long(info) })
	}
}

// corrected applies the features' Requests hooks to the request info.
type corrected struct {
	request.RequestInfoResolver
	hooks []func(*request.RequestInfo)
}

// NewRequestInfo returns the corrected request info.
func (c corrected) NewRequestInfo(r *http.Request) (*request.RequestInfo, error) {
	info, err := c.RequestInfoResolver.NewRequestInfo(withWholeURL(r))
	if err != nil {
		return nil, err
	}
	for _, hook := range c.hooks {
		hook(info)
	}
	return info, nil
}
