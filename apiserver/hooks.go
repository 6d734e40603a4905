package apiserver

import (
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/authentication/group"
	authentication "k8s.io/apiserver/pkg/authentication/request/union"
	authorization "k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"
)

// hook makes the features' hooks and puts them together.
func (s *Server) hook(features []Feature) error {
	s.hooks.PostStart = map[string]genericserver.PostStartHookFunc{}
	for _, feature := range features {
		if feature.Hooks == nil {
			continue
		}
		made, err := feature.Hooks(s.deps)
		if err != nil {
			return err
		}
		s.hooks.Authenticators = append(s.hooks.Authenticators, made.Authenticators...)
		s.hooks.Authorizers = append(s.hooks.Authorizers, made.Authorizers...)
		s.hooks.Filters = append(s.hooks.Filters, made.Filters...)
		s.hooks.Requests = append(s.hooks.Requests, made.Requests...)
		s.hooks.Conceal = append(s.hooks.Conceal, made.Conceal...)
		if made.LongRunning != nil {
			s.longRunning = append(s.longRunning, made.LongRunning)
		}
		s.hooks.Handlers = append(s.hooks.Handlers, made.Handlers...)
		for name, hook := range made.PostStart {
			if _, taken := s.hooks.PostStart[name]; taken {
				return fmt.Errorf("add post-start hook %q: there is one of this name", name)
			}
			s.hooks.PostStart[name] = hook
		}
	}
	if err := s.Secure(&s.config); err != nil {
		return err
	}
	s.deps.Authorizer = s.config.Authorization.Authorizer
	return nil
}

// Secure puts the features' authenticators and authorizers before those of a configuration. Two
// authorizers of one name are an error.
func (s *Server) Secure(config *genericserver.Config) (err error) {
	if len(s.hooks.Authenticators) > 0 {
		ours := group.NewAuthenticatedGroupAdder(authentication.New(s.hooks.Authenticators...))
		config.Authentication.Authenticator = authentication.New(ours, config.Authentication.Authenticator)
	}
	if len(s.hooks.Authorizers) > 0 {
		theirs := authorization.NamedAuthorizer{AuthorizerName: "kubernetes", Authorizer: config.Authorization.Authorizer}
		config.Authorization.Authorizer, err = authorization.New(append(slices.Clip(s.hooks.Authorizers), theirs)...)
	}
	return err
}

// Filter wraps the API server's whole chain in the features' filters, and leads requests for public handlers into their
// own chain, which public makes.
func (s *Server) Filter(chain http.Handler, public func(http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	handlers := 0
	for _, handler := range s.hooks.Handlers {
		if handler.Public {
			mux.Handle(handler.Path, handler)
			handlers++
		}
	}
	chain = s.concealPaths(s.redirectLegacy(chain))
	filtered := chain
	if handlers > 0 {
		served := public(mux)
		filtered = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// The multiplexer is only asked: it would redirect paths that it cleans, which are the chain's affair.
			if _, pattern := mux.Handler(r); pattern != "" {
				served.ServeHTTP(w, r)
				return
			}
			chain.ServeHTTP(w, r)
		})
	}
	for _, filter := range slices.Backward(s.hooks.Filters) {
		filtered = filter(filtered)
	}
	return filtered
}

// Attach gives the front server of the chain the features' other handlers and post-start hooks.
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

// Correct lets the features' hooks see what the requests of a configuration ask for, and say how long they may take.
func (s *Server) Correct(config *genericserver.Config) {
	read := config.RequestInfoResolver
	if read == nil {
		read = genericserver.NewRequestInfoResolver(config)
	}
	config.RequestInfoResolver = corrected{read, s.hooks.Requests}
	upstream := config.LongRunningFunc
	config.LongRunningFunc = func(r *http.Request, asked *request.RequestInfo) bool {
		return upstream(r, asked) || slices.ContainsFunc(s.longRunning, func(long func(*request.RequestInfo) bool) bool { return long(asked) })
	}
}

// corrected reads requests and has them corrected.
type corrected struct {
	request.RequestInfoResolver
	hooks []func(*request.RequestInfo)
}

// NewRequestInfo reads what is asked for.
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
