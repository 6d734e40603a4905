// Package apiserver serves Slipway's API groups as one server in the delegation chain of the
// embedded Kubernetes API server. A request passes that server's authentication, authorization,
// admission, audit and flow control, and is then served in the same process, without a network hop.
//
// A package describes what it adds as a Feature: API groups, whose resources are data (Resource),
// admission plugins, and hooks for authentication, authorization and handlers. Server turns
// features into a generic API server, which delegates every other request to the next server of the
// chain. Objects are stored as protobuf in the cluster's etcd, in the only wire type of
// github.com/openshift/api, or as JSON if their group has types of Slipway. The same Go type is
// registered under its version and as the internal version, so Slipway needs no conversion and no
// generated code.
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

// Feature describes the additions of one package to the API server. Every field is optional.
type Feature struct {
	// Groups are the API groups that the feature serves.
	Groups []Group
	// Admission contains the feature's admission plugins.
	Admission []Admission
	// Hooks returns the feature's additions besides groups and admission plugins. It is called once,
	// before the storage of the groups is created.
	Hooks func(Deps) (Hooks, error)
}

// Group describes one API group.
type Group struct {
	// GroupVersion is the group's name and its only version, for instance user.openshift.io/v1.
	GroupVersion schema.GroupVersion
	// Install registers the group's wire types (github.com/openshift/api/<group>/v1.Install).
	Install func(*runtime.Scheme) error
	// Legacy registers the kinds that OpenShift 3 also had without a group, as `apiVersion: v1`
	// (github.com/openshift/api/<group>/v1.DeprecatedInstallWithoutGroup); optional.
	Legacy func(*runtime.Scheme) error
	// Definitions returns the OpenAPI definitions of the wire types of a group whose types are
	// Slipway's own. Such types have no protobuf form: they are stored and served as JSON. The
	// definitions of other groups are in github.com/openshift/api.
	Definitions common.GetOpenAPIDefinitions
	// Prepare registers types that a Resource cannot express, such as query parameters; optional.
	Prepare func(*runtime.Scheme) error
	// Resources are the group's resources, each a Resource or a Virtual. A resource can use the
	// stores of the resources before it.
	Resources []Served
}

// Deps contains the clients and informers that storage, hooks and handlers can use. They are ready
// before the server listens.
type Deps struct {
	// Scheme contains the wire types of all groups of the features.
	Scheme *runtime.Scheme
	// Getter returns the storage options of a resource, for a registry.Store that Resource does not
	// create.
	Getter generic.RESTOptionsGetter
	// Informers is the shared informer factory for built-in Kubernetes types. Listers obtained from it
	// use the API server's own informer caches.
	Informers informers.SharedInformerFactory
	// Loopback reaches this server as system:masters. It works once the server listens: use it in
	// requests and in post-start hooks.
	Loopback *rest.Config
	// Kube and Dynamic are clients of Loopback without a client-side rate limit.
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// Authorizer combines the server's authorizer with the authorizers of all features. Use it in
	// requests, not in Hooks.
	Authorizer authorizer.Authorizer
	// Stores are the stores of all Resources, for access within the process that bypasses admission
	// and authorization. The store of "things/status" changes only the status. The map is filled while
	// groups are created: Hooks must not read it, but the hooks that it returns can read it when they
	// serve a request.
	Stores map[schema.GroupResource]*registry.Store
}

// Admission is one admission plugin. It is enabled unless the administrator's flags disable it.
type Admission struct {
	// Name is the plugin's name in configuration and messages, for instance
	// "SecurityContextConstraint".
	Name string
	// Before names the Kubernetes plugin before which this plugin runs. By default, this plugin runs
	// before the first policy or webhook plugin, so that policies and webhooks see its changes.
	Before string
	// New creates the plugin. The plugin gets clients, informers and the authorizer through the
	// interfaces of k8s.io/apiserver/pkg/admission/initializer. If the plugin and the feature's Hooks
	// share state, the feature must pass the state to both.
	New admission.Factory
	// Live means that the plugin's configuration can change while the server runs. The plugin is then
	// recreated. It can use only the authorizer and the informer of namespaces. Optional means that a
	// Live plugin is disabled unless the configuration contains it.
	Live, Optional bool
}

// Hooks are a feature's additions to the server besides its groups. Every field is optional.
type Hooks struct {
	// Authenticators run in order before those of Kubernetes. An authenticator that does not
	// recognize a request's credentials returns false. Users that it accepts get the group
	// system:authenticated.
	Authenticators []authenticator.Request
	// Authorizers run before those of Kubernetes. DecisionNoOpinion passes a request on; other
	// decisions are final.
	Authorizers []union.NamedAuthorizer
	// Filters run before authentication, in this order.
	Filters []func(http.Handler) http.Handler
	// Requests can correct the request info that was read from the path. They run before any other
	// code uses it.
	Requests []func(*request.RequestInfo)
	// Conceal removes secrets from the path of a request, so that they do not reach the logs and
	// the audit log. The request info is read from the complete path.
	Conceal []func(path string) string
	// LongRunning reports whether a request has no timeout, in addition to upstream's long-running
	// requests.
	LongRunning func(*request.RequestInfo) bool
	// Handlers serve paths outside /api and /apis.
	Handlers []Handler
	// PostStart hooks run when the server listens. The server is ready when all have returned.
	PostStart map[string]genericserver.PostStartHookFunc
}

// Handler serves a path, or with a trailing slash everything below it.
type Handler struct {
	Path string
	// Public handlers authenticate users themselves. Priority and fairness and audit treat their
	// requests as those of system:anonymous, and their bodies are limited to 64 KiB. For other
	// handlers the user is in the request's context, and access needs a role with the path as
	// nonResourceURL.
	Public bool
	http.Handler
}
