package kube

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"
	filters "k8s.io/apiserver/pkg/endpoints/filters"
	genericserver "k8s.io/apiserver/pkg/server"
	serveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	controlplane "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/slipway-platform/slipway/apiserver"
)

// chain links the API servers. A request passes through the aggregator's filters once. The first of
// these servers that has the request's path serves the request: the aggregator, Kubernetes,
// Slipway's groups, custom resources, and finally the not-found handler. chain is upstream's
// CreateServerChain with an additional server.
func (s *APIServer) chain(config *app.Config, authorizer *apiserver.Authorizer, etcd *etcdConnection) (*aggregator.APIAggregator, error) {
	generic := config.KubeAPIs.ControlPlane.Generic
	generic.LoopbackClientConfig.Wrap(carryTenant)
	// All of Kubernetes' servers share these configurations.
	apiserver.KeepNoDefinitions(generic.OpenAPIConfig, generic.OpenAPIV3Config)
	generic.RESTOptionsGetter = etcd.stores(generic.RESTOptionsGetter)
	extensions := config.ApiExtensions
	extensions.GenericConfig.RESTOptionsGetter = etcd.stores(extensions.GenericConfig.RESTOptionsGetter)
	extensions.ExtraConfig.CRDRESTOptionsGetter = etcd.stores(extensions.ExtraConfig.CRDRESTOptionsGetter)
	server, err := apiserver.New(s.Features, apiserver.Base{
		Config: *generic, Etcd: *config.Options.Etcd, Storage: etcd.stores, Authorizer: authorizer, Informers: config.KubeAPIs.ControlPlane.VersionedInformers,
		Definitions: openapi.GetOpenAPIDefinitions,
	})
	if err != nil {
		return nil, err
	}
	if err := hook(config, server); err != nil {
		return nil, err
	}
	if s.Recorder != nil {
		s.Recorder.Use(&config.Aggregator.GenericConfig.Config)
	}
	generic.SkipOpenAPIInstallation = true // Document serves OpenAPI
	if err := replaceDefaultsHooks(generic); err != nil {
		return nil, fmt.Errorf("add hook for default objects: %w", err)
	}
	completed, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("complete API server configuration: %w", err)
	}
	reconciler := &completed.KubeAPIs.Extra.EndpointReconcilerConfig.Reconciler
	*reconciler = endpoints{*reconciler, masterService{s.DNSPort}}
	notFound := notfoundhandler.New(generic.Serializer, filters.NoMuxAndDiscoveryIncompleteKey)
	custom, err := completed.ApiExtensions.New(genericserver.NewEmptyDelegateWithCustomHandler(notFound))
	if err != nil {
		return nil, fmt.Errorf("create API server for custom resources: %w", err)
	}
	crdEnabled := completed.ApiExtensions.GenericConfig.MergedResourceConfig.ResourceEnabled(
		apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))

	link, err := server.Link(custom.GenericAPIServer)
	if err != nil {
		return nil, err
	}
	kubernetes, err := completed.KubeAPIs.New(link)
	if err != nil {
		return nil, fmt.Errorf("create API server for Kubernetes: %w", err)
	}
	if err := server.Announce(kubernetes.ControlPlane.GenericAPIServer); err != nil {
		return nil, err
	}
	if err := apiserver.Document(kubernetes.ControlPlane.GenericAPIServer, generic.OpenAPIConfig, generic.OpenAPIV3Config); err != nil {
		return nil, err
	}
	apiserver.ReleaseDefinitions(kubernetes.ControlPlane.GenericAPIServer)
	for _, link := range []*genericserver.GenericAPIServer{custom.GenericAPIServer, link, kubernetes.ControlPlane.GenericAPIServer} {
		apiserver.ReleaseMatchers(link.Handler.GoRestfulContainer.RegisteredWebServices())
	}
	front, err := controlplane.CreateAggregatorServer(completed.Aggregator, kubernetes.ControlPlane.GenericAPIServer,
		custom.Informers.Apiextensions().V1().CustomResourceDefinitions(), crdEnabled, priorities(server.GroupVersions()))
	if err != nil {
		return nil, fmt.Errorf("create API aggregator: %w", err)
	}
	return front, server.Attach(front.GenericAPIServer)
}

// hook adds the features' hooks to every server's configuration. It also adds them to the handler
// chain of the aggregator, which is the first server that receives a request.
func hook(config *app.Config, server *apiserver.Server) error {
	front := &config.Aggregator.GenericConfig.Config
	for _, link := range []*genericserver.Config{front, config.KubeAPIs.ControlPlane.Generic, &config.ApiExtensions.GenericConfig.Config} {
		upstream := link.Authorization.Authorizer
		graph := union.NamedAuthorizer{AuthorizerName: "node-graph", Authorizer: authorizer.AuthorizerFunc(lateGraph{upstream}.authorize)}
		var err error
		link.Authorization.Authorizer, err = union.New(graph, union.NamedAuthorizer{AuthorizerName: "upstream", Authorizer: upstream})
		if err := errors.Join(err, server.Secure(link)); err != nil {
			return fmt.Errorf("combine authorizers: %w", err)
		}
	}
	server.Resolve(front)
	server.Correct(front)
	front.AuditBackend = hideTokens(front.AuditBackend)
	build := front.BuildHandlerChainFunc
	requester := requesters(config.KubeAPIs.ControlPlane.VersionedInformers.Core().V1().Namespaces().Lister())
	costs, shares := apiserver.NewCosts(payer(requester)), newControllerShares(requester)
	front.BuildHandlerChainFunc = func(api http.Handler, config *genericserver.Config) http.Handler {
		own := *config
		if own.FlowControl != nil {
			own.FlowControl = costs.ReceiveFirst(own.FlowControl)
		}
		return server.Filter(apiserver.Receive(build(markTenant(requester, shares.limit(server.Serve(costs.Bound(api)))), &own)),
			func(public http.Handler) http.Handler { return apiserver.PublicChain(markPublic(public), config) })
	}
	return nil
}

// admit registers the features' admission plugins in upstream's order.
func admit(admission *serveroptions.AdmissionOptions, features []apiserver.Feature) error {
	order := slices.Clone(admission.RecommendedPluginOrder)
	var names []string
	for _, feature := range features {
		for _, plugin := range feature.Admission {
			before := cmp.Or(plugin.Before, mutatingpolicy.PluginName)
			position := slices.Index(order, before)
			if position < 0 {
				return fmt.Errorf("add admission plugin %q before %q: the API server has no such plugin", plugin.Name, before)
			}
			order = slices.Insert(order, position, plugin.Name)
			admission.Plugins.Register(plugin.Name, plugin.New)
			names = append(names, plugin.Name)
		}
	}
	admission.RecommendedPluginOrder = order
	admission.Decorators = append(admission.Decorators, onWireTypes(names), reviewAnywhere())
	return nil
}

// groupOrder is the order of Kubernetes' API groups, except for the generic groups, which upstream
// exports. If two groups share a short name ("deploy"), the first group takes precedence. The order
// is upstream's.
var groupOrder = []string{"apps", "autoscaling", "batch", "networking.k8s.io", "policy", "storage.k8s.io",
	"scheduling.k8s.io", "node.k8s.io", "resource.k8s.io", "lifecycle.k8s.io"}

// priorities returns the discovery priority of every served group version. Discovery does not
// announce a group version without a priority.
func priorities(versions []schema.GroupVersion) map[schema.GroupVersion]controlplane.APIServicePriority {
	all := controlplane.DefaultGenericAPIServicePriorities()
	for position, group := range groupOrder {
		for age, gv := range legacyscheme.Scheme.PrioritizedVersionsForGroup(group) {
			all[gv] = controlplane.APIServicePriority{
				// The priorities are below that of the core group (18000), in steps of 100 as in upstream.
				Group: int32(17900 - 100*position), Version: int32(30 - 3*age),
			}
		}
	}
	for position, gv := range versions {
		all[gv] = controlplane.APIServicePriority{Group: int32(9900 - 10*position), Version: 15}
	}
	// As in OpenShift 3.11, OpenShift's authorization group takes precedence over the Kubernetes
	// groups. `get rolebindings` refers to OpenShift's role bindings, which show users and groups.
	// `can-i create subjectaccessreviews` refers to OpenShift's reviews, which project members can
	// create.
	highest := max(all[rbacv1.SchemeGroupVersion].Group, all[kubeauthorizationv1.SchemeGroupVersion].Group)
	all[authorizationv1.GroupVersion] = controlplane.APIServicePriority{Group: highest + 50, Version: 15}
	return all
}
