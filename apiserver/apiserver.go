// Package apiserver serves API groups of ours as one link of the embedded Kubernetes API server's
// chain: a request passes authentication, authorization, admission, audit and flow control of the
// one server and is then answered here, without a hop over the network.
//
// A package of the product describes what it adds as a Feature: API groups, whose resources are data
// (Resource), and what its behaviour hooks into: admission, authentication, handlers. Server turns
// features into a generic API server that delegates everything else to the next link. Objects are
// stored as protobuf in the cluster's etcd, in the one wire type of github.com/openshift/api: the same
// Go type is registered under its version and as the internal version, so there is no conversion and
// no generated code of ours.
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
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
)

// Feature is what one package of the product adds to the API server. Every field is optional.
type Feature struct {
	// Groups are the API groups that it serves.
	Groups []Group
	// Admission are its admission plug-ins.
	Admission []Admission
	// Hooks makes what stands beside the groups. It is called once, before the groups' storage is made.
	Hooks func(Deps) (Hooks, error)
}

// Group is what one API group serves.
type Group struct {
	// GroupVersion is the group's name and its only version, for instance user.openshift.io/v1.
	GroupVersion schema.GroupVersion
	// Install registers the group's wire types (github.com/openshift/api/<group>/v1.Install).
	Install func(*runtime.Scheme) error
	// Legacy registers the kinds that OpenShift 3 knew without a group, as `apiVersion: v1`
	// (github.com/openshift/api/<group>/v1.DeprecatedInstallWithoutGroup); optional.
	Legacy func(*runtime.Scheme) error
	// Prepare registers what resources cannot say by themselves, such as query parameters; optional.
	Prepare func(*runtime.Scheme) error
	// Resources are what it serves, each a Resource or a Virtual. One may use the stores of those above it.
	Resources []Served
}

// Deps is what storage, hooks and handlers may use. All of it is ready before the server listens.
type Deps struct {
	// Scheme knows the wire types of all our groups.
	Scheme *runtime.Scheme
	// Getter gives the storage options of a resource, for a registry.Store that Resource does not make.
	Getter generic.RESTOptionsGetter
	// Informers are Kubernetes' own; whoever asks for a lister here shares the API server's cache.
	Informers informers.SharedInformerFactory
	// Loopback reaches the server itself as system:masters. It answers once the server listens: use it in
	// requests and in post-start hooks.
	Loopback *rest.Config
	// Authorizer decides as the server itself does.
	Authorizer authorizer.Authorizer
	// Stores are the stores of all Resources, for access within the process that passes no admission and no
	// authorization; that of "things/status" changes the status alone. It is filled while groups are made:
	// hooks look into it when they are used, not before.
	Stores map[schema.GroupResource]*registry.Store
}

// Admission is one admission plug-in. It is on unless the administrator's flags turn it off.
type Admission struct {
	// Name is what configuration and messages call it, for instance "SecurityContextConstraint".
	Name string
	// Before is the plug-in of Kubernetes in front of which it is asked; by default the first of the
	// policies and webhooks, which thus see its changes.
	Before string
	// New makes the plug-in. It gets clients, informers and the authorizer through the interfaces of
	// k8s.io/apiserver/pkg/admission/initializer. What it shares with Hooks is the Feature's own affair.
	New admission.Factory
	// Live says that it can be configured anew while the server runs; it is then made again, and wants no more than
	// Kubernetes' informers of namespaces and the authorizer. Optional, for one that is Live, says that it is off unless
	// the configuration has it.
	Live, Optional bool
}

// Hooks are what a feature puts into the server beside its groups. Every field is optional.
type Hooks struct {
	// Authenticators are asked, in order, before those of Kubernetes. One that does not know a request's
	// credentials returns false. Users that they accept get the group system:authenticated.
	Authenticators []authenticator.Request
	// Authorizers are asked before those of Kubernetes; DecisionNoOpinion passes on, the others are final.
	Authorizers []union.NamedAuthorizer
	// Filters see each request before authentication, the first one first.
	Filters []func(http.Handler) http.Handler
	// Requests see what each request asks for, as it was read from its path, and may correct it before anyone decides by it.
	Requests []func(*request.RequestInfo)
	// Conceal takes secrets out of the path of a request, so that no log and no audit log has them. What the request asks
	// for is read from the whole path.
	Conceal []func(path string) string
	// LongRunning says which requests may take longer than others and are not ended for it, beside those that upstream knows.
	LongRunning func(*request.RequestInfo) bool
	// Handlers answer paths outside /api and /apis.
	Handlers []Handler
	// PostStart run when the server listens; it is not ready before they have returned.
	PostStart map[string]genericserver.PostStartHookFunc
}

// Handler answers a path, or with a trailing slash everything below it.
type Handler struct {
	Path string
	// Public answers everyone: the handler finds out by itself who asks. Its requests are subject to priority and fairness
	// and to audit, as those of system:anonymous, and their bodies are limited to 64 KiB. Otherwise the user is in
	// the request's context, and roles with the path as nonResourceURL say who may come.
	Public bool
	http.Handler
}
