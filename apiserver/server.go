package apiserver

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/client-go/informers"
	"k8s.io/kube-openapi/pkg/common"
)

// Server is the server in the delegation chain that serves the features' groups. It also merges
// their hooks.
type Server struct {
	groups []Group
	hooks  Hooks
	// longRunning contains the features' LongRunning hooks.
	longRunning []func(*request.RequestInfo) bool
	legacy      legacy
	// announced contains the resources in the core group's discovery.
	announced  []metav1.APIResource
	authorizer *Authorizer

	config           genericserver.Config
	informers        informers.SharedInformerFactory
	scheme, external *runtime.Scheme
	codecs           serializer.CodecFactory
	deps             Deps
}

// Base contains the parts of the embedded API server that Server reuses.
type Base struct {
	// Config is the embedded API server's configuration. Server copies it and does not change it.
	Config genericserver.Config
	// Etcd contains the embedded API server's completed storage options.
	Etcd options.EtcdOptions
	// Storage, if set, wraps upstream's storage options for the groups.
	Storage func(generic.RESTOptionsGetter) generic.RESTOptionsGetter
	// Authorizer is set to the combination of the embedded API server's authorizer with all
	// features' authorizers.
	Authorizer *Authorizer
	// Informers is the embedded API server's informer factory.
	Informers informers.SharedInformerFactory
	// Definitions returns Kubernetes' OpenAPI definitions.
	Definitions common.GetOpenAPIDefinitions
}

// New registers the features' types and calls their hooks. It returns an error if a group's types
// cannot be registered, or if a hook fails.
func New(features []Feature, base Base) (*Server, error) {
	s := &Server{config: base.Config, authorizer: base.Authorizer, informers: base.Informers, legacy: legacy{map[string]rest.Storage{}, map[string]string{}}}
	for _, feature := range features {
		s.groups = append(s.groups, feature.Groups...)
	}
	var err error
	if s.scheme, s.external, err = schemes(s.groups); err != nil {
		return nil, err
	}
	s.codecs = serializer.NewCodecFactory(s.scheme)
	// The embedded API server's own hooks, and the storage options for its own types, do not apply
	// here.
	s.config.PostStartHooks = map[string]genericserver.PostStartHookConfigEntry{}
	s.config.RESTOptionsGetter = nil
	s.config.SkipOpenAPIInstallation = true // Document serves the documents
	s.config.Serializer = s.codecs
	s.config.AdmissionControl = legacyAdmission{base.Config.AdmissionControl, &s.legacy}
	s.Resolve(&s.config)
	if err := s.store(base.Etcd); err != nil {
		return nil, err
	}
	if base.Storage != nil {
		s.config.RESTOptionsGetter = base.Storage(s.config.RESTOptionsGetter)
	}
	s.config.MergedResourceConfig = serverstorage.NewResourceConfig()
	s.config.MergedResourceConfig.EnableVersions(s.GroupVersions()...)
	s.describe(base.Definitions)
	s.deps = Deps{
		Scheme: s.scheme, Getter: s.config.RESTOptionsGetter, Informers: base.Informers,
		Loopback: base.Config.LoopbackClientConfig, Authorizer: base.Authorizer,
		Stores: map[schema.GroupResource]*registry.Store{},
	}
	if err := s.deps.connect(); err != nil {
		return nil, err
	}
	if err := s.hook(features); err != nil {
		return nil, err
	}
	return s, nil
}

// GroupVersions returns the group versions that the server serves, in the order of its features.
func (s *Server) GroupVersions() []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, group := range s.groups {
		versions = append(versions, group.GroupVersion)
	}
	return versions
}

// Link creates the generic API server, which delegates requests for all other groups to next.
func (s *Server) Link(next genericserver.DelegationTarget) (*genericserver.GenericAPIServer, error) {
	server, err := s.config.Complete(s.informers).New("openshift-apiserver", next)
	if err != nil {
		return nil, fmt.Errorf("create API server for OpenShift's groups: %w", err)
	}
	var infos []*genericserver.APIGroupInfo
	for _, group := range s.groups {
		info, err := s.describeGroup(group)
		if err != nil {
			return nil, fmt.Errorf("serve API group %s: %w", group.GroupVersion, err)
		}
		infos = append(infos, info)
	}
	// A single call installs all groups, because each call builds an OpenAPI model of the types.
	if err := server.InstallAPIGroups(infos...); err != nil {
		return nil, fmt.Errorf("serve OpenShift's API groups: %w", err)
	}
	if err := s.serveLegacy(server); err != nil {
		return nil, err
	}
	ReleaseDefinitions(server)
	s.config.OpenAPIV3Config.Definitions = nil // a document that is requested later recreates them
	return server, Document(server, s.config.OpenAPIConfig, s.config.OpenAPIV3Config)
}

// store configures storage in etcd. The codec writes protobuf, or JSON for types without a protobuf
// form, and decodes all versions.
func (s *Server) store(etcd options.EtcdOptions) error {
	versions := schema.GroupVersions(s.GroupVersions())
	stored := newStorageSerializer(s.scheme)
	internal := make([]schema.GroupVersion, 0, len(versions))
	for _, gv := range versions {
		internal = append(internal, schema.GroupVersion{Group: gv.Group, Version: runtime.APIVersionInternal})
	}
	etcd.StorageConfig.Codec = runtime.NewCodec(s.codecs.EncoderForVersion(stored, versions),
		s.codecs.UniversalDecoder(internal...))
	etcd.StorageConfig.EncodeVersioner = versions
	etcd.SkipHealthEndpoints = true
	if err := etcd.ApplyTo(&s.config); err != nil {
		return fmt.Errorf("connect to the storage of OpenShift's API groups: %w", err)
	}
	return nil
}

// describeGroup creates a group's storage.
func (s *Server) describeGroup(group Group) (*genericserver.APIGroupInfo, error) {
	storages := map[string]rest.Storage{}
	for _, resource := range group.Resources {
		storage, err := resource.storage(s.deps, group.GroupVersion)
		if err != nil {
			return nil, err
		}
		maps.Copy(storages, storage)
	}
	s.legacy.add(s.scheme, group.GroupVersion.Group, storages)
	info := genericserver.NewDefaultAPIGroupInfo(group.GroupVersion.Group, s.scheme,
		runtime.NewParameterCodec(s.scheme), s.codecs)
	if group.Definitions != nil {
		info.NegotiatedSerializer = jsonOnly{info.NegotiatedSerializer}
	}
	info.VersionedResourcesStorageMap[group.GroupVersion.Version] = storages
	return &info, nil
}
