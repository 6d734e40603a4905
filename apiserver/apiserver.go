// Package apiserver serves Slipway's API groups as one server in the delegation chain of the
// embedded Kubernetes API server. A request passes that server's authentication, authorization,
// admission, audit and flow control, and is then served in the same process, without a network hop.
//
// A package describes its additions to the API server as a Feature. A Feature contains API groups
// with their resources as data (Resource), admission plugins, and hooks for authentication,
// authorization and handlers. Server turns features into a generic API server, which delegates
// every other request to the next server in the chain. Objects are stored in the cluster's etcd as
// protobuf, in the only version of their wire type in github.com/openshift/api. If a group has
// Slipway's own types, its objects are stored as JSON. The same Go type is registered under its
// version and as the internal version, so Slipway requires neither conversion nor generated code.
package apiserver

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"
)

// Feature describes what one package adds to the API server. Every field is optional.
type Feature struct {
	// Groups are the API groups that the feature serves.
	Groups []Group
	// Admission contains the feature's admission plugins.
	Admission []Admission
	// Hooks returns the feature's additions other than groups and admission plugins. It is called
	// once, before the groups' storage is created.
	Hooks func(Deps) (Hooks, error)
}

// Group describes one API group.
type Group struct {
	// GroupVersion is the group's name and its only version, for example user.openshift.io/v1.
	GroupVersion schema.GroupVersion
	// Install registers the group's wire types (github.com/openshift/api/<group>/v1.Install).
	Install func(*runtime.Scheme) error
	// Legacy registers the kinds that OpenShift 3 also had without a group, as `apiVersion: v1`
	// (github.com/openshift/api/<group>/v1.DeprecatedInstallWithoutGroup). It is optional.
	Legacy func(*runtime.Scheme) error
	// Definitions returns the OpenAPI definitions of a group's wire types, if the types are
	// Slipway's own. These types have no protobuf form: they are stored and served as JSON. The
	// definitions for other groups are in github.com/openshift/api.
	Definitions common.GetOpenAPIDefinitions
	// Prepare registers types for which Resource has no field, such as query parameters. It is
	// optional.
	Prepare func(*runtime.Scheme) error
	// Resources are the group's resources, each a Resource or a Virtual. A resource can use the
	// stores of the resources that precede it.
	Resources []Served
}

// Deps provides the clients and informers that storage, hooks and handlers can use. They are ready
// before the server accepts requests.
type Deps struct {
	// Scheme contains the wire types of all features' groups.
	Scheme *runtime.Scheme
	// Getter returns a resource's storage options. It is required only for a registry.Store that
	// Resource does not create.
	Getter generic.RESTOptionsGetter
	// Informers is the shared informer factory for built-in Kubernetes types. Listers obtained from it
	// use the API server's own informer caches.
	Informers informers.SharedInformerFactory
	// Loopback connects to this server as system:masters. It works only after the server has started
	// to accept requests, so it must be used only while serving requests and in post-start hooks.
	Loopback *rest.Config
	// Kube and Dynamic are clients that use Loopback without a client-side rate limit.
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// Authorizer combines the server's authorizer with the authorizers of all features. It must be
	// used only while serving requests, not in Hooks.
	Authorizer authorizer.Authorizer
	// Stores contains the stores of all Resources, for in-process access that bypasses admission
	// and authorization. The store of "things/status" changes only the status. The map is filled
	// while groups are created. The Hooks function must not read it, but the hooks that it returns
	// can read it when they serve a request.
	Stores map[schema.GroupResource]*registry.Store
}

// Admission describes an admission plugin. It is enabled unless the administrator's flags disable
// it.
type Admission struct {
	// Name is the plugin's name in configuration and messages, for example
	// "SecurityContextConstraint".
	Name string
	// Before is the name of the Kubernetes plugin that this plugin runs before. By default, this
	// plugin runs before the first policy or webhook plugin, so that policies and webhooks see its
	// changes.
	Before string
	// New creates the plugin. The plugin receives clients, informers and the authorizer through the
	// interfaces in k8s.io/apiserver/pkg/admission/initializer. If the plugin and the feature's
	// Hooks share state, the feature must pass the state to both.
	New admission.Factory
	// Live means that the plugin's configuration can change while the server is running. A change
	// recreates the plugin. A live plugin can use only the authorizer and the namespace informer.
	// Optional means that a live plugin is disabled unless the configuration contains it.
	Live, Optional bool
}

// Hooks are a feature's additions to the server other than groups and admission plugins. Every
// field is optional.
type Hooks struct {
	// Authenticators run in order, before Kubernetes' authenticators. An authenticator that does not
	// recognize a request's credentials returns false. Users that it accepts are added to the
	// system:authenticated group.
	Authenticators []authenticator.Request
	// Authorizers run before Kubernetes' authorizers. DecisionNoOpinion passes a request on to the
	// next authorizer. Other decisions are final.
	Authorizers []union.NamedAuthorizer
	// Filters run before authentication, in this order.
	Filters []func(http.Handler) http.Handler
	// Requests can correct the request info that was parsed from the path. They run before any
	// other code uses the request info.
	Requests []func(*request.RequestInfo)
	// Conceal removes secrets from a request's path, so that they do not appear in the logs or the
	// audit log. The request info is parsed from the complete path.
	Conceal []func(path string) string
	// LongRunning reports whether a request has no timeout. Requests that upstream considers
	// long-running never have a timeout, regardless of the result.
	LongRunning func(*request.RequestInfo) bool
	// Handlers serve paths outside /api and /apis.
	Handlers []Handler
	// PostStart hooks run once the server accepts requests. The server is ready when all hooks have
	// returned.
	PostStart map[string]genericserver.PostStartHookFunc
}

// Handler serves a path or, if the path has a trailing slash, all paths below it.
type Handler struct {
	Path string
	// Public means that the handler authenticates users itself. Priority and fairness, and the
	// audit log, treat its requests as requests from system:anonymous. Their bodies are limited to
	// 64 KiB. For other handlers, the request's context contains the user, and access requires a
	// role that lists the path in nonResourceURLs.
	Public bool
	http.Handler
}
