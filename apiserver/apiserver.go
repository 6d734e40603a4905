// Package apiserver serves API groups of ours as one link of the embedded Kubernetes API server's
// chain: a request passes authentication, authorization, admission, audit and flow control of the
// one server and is then answered here, without a hop over the network.
//
// A feature describes what it serves as a Group; Server turns groups into a generic API server that
// delegates everything else to the next link. Objects are stored as protobuf in the cluster's etcd,
// in the one wire type of github.com/openshift/api: the same Go type is registered under its version
// and as the internal version, so there is no conversion and no generated code of ours.
package apiserver

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/informers"
	"k8s.io/kube-openapi/pkg/common"
)

// Group is what one API group serves.
type Group struct {
	// GroupVersion is the group's name and its only version, for instance user.openshift.io/v1.
	GroupVersion schema.GroupVersion
	// Install registers the group's wire types (github.com/openshift/api/<group>/v1.Install).
	Install func(*runtime.Scheme) error
	// Prepare registers defaults, field labels and query parameters; optional.
	Prepare func(*runtime.Scheme) error
	// Storage makes the group's resources by their plural name, subresources as "resource/sub".
	Storage func(*runtime.Scheme, generic.RESTOptionsGetter) (map[string]rest.Storage, error)
}

// Server is the link of the chain that serves Groups.
type Server struct {
	Groups []Group

	scheme, external *runtime.Scheme
	codecs           serializer.CodecFactory
}

// New prepares a server for groups. A group whose types cannot be registered is an error.
func New(groups []Group) (*Server, error) {
	s := &Server{Groups: groups}
	var err error
	if s.scheme, s.external, err = schemes(groups); err != nil {
		return nil, err
	}
	s.codecs = serializer.NewCodecFactory(s.scheme)
	return s, nil
}

// GroupVersions lists what the server serves, in the order of its groups.
func (s *Server) GroupVersions() []schema.GroupVersion {
	var served []schema.GroupVersion
	for _, group := range s.Groups {
		served = append(served, group.GroupVersion)
	}
	return served
}

// Link makes the generic API server. base is the embedded API server's own configuration (it is
// copied, not changed), etcd its completed storage options, kubeDefinitions Kubernetes' OpenAPI
// definitions, and next the link that answers for every other group.
func (s *Server) Link(base genericserver.Config, etcd options.EtcdOptions, kube informers.SharedInformerFactory,
	kubeDefinitions common.GetOpenAPIDefinitions, next genericserver.DelegationTarget) (*genericserver.GenericAPIServer, error) {
	config := base
	// What the base has set up for itself and would collide: its hooks, and storage in its own types.
	config.PostStartHooks = map[string]genericserver.PostStartHookConfigEntry{}
	config.RESTOptionsGetter = nil
	config.Serializer = s.codecs
	if err := s.store(&config, etcd); err != nil {
		return nil, err
	}
	enabled := genericResources(s.GroupVersions())
	config.MergedResourceConfig = enabled
	s.describe(&config, kubeDefinitions)

	server, err := config.Complete(kube).New("openshift-apiserver", next)
	if err != nil {
		return nil, fmt.Errorf("make API server for our groups: %w", err)
	}
	for _, group := range s.Groups {
		if err := s.install(server, group, config.RESTOptionsGetter); err != nil {
			return nil, fmt.Errorf("serve API group %s: %w", group.GroupVersion, err)
		}
	}
	return server, nil
}

// store points the configuration at etcd with our codec: protobuf, readable as any version.
func (s *Server) store(config *genericserver.Config, etcd options.EtcdOptions) error {
	versions := schema.GroupVersions(s.GroupVersions())
	proto := protobuf.NewSerializer(s.scheme, s.scheme)
	internal := make([]schema.GroupVersion, 0, len(versions))
	for _, gv := range versions {
		internal = append(internal, schema.GroupVersion{Group: gv.Group, Version: runtime.APIVersionInternal})
	}
	etcd.StorageConfig.Codec = runtime.NewCodec(s.codecs.EncoderForVersion(proto, versions),
		s.codecs.UniversalDecoder(internal...))
	etcd.StorageConfig.EncodeVersioner = versions
	etcd.SkipHealthEndpoints = true
	if err := etcd.ApplyTo(config); err != nil {
		return fmt.Errorf("connect storage of our API groups: %w", err)
	}
	return nil
}

func (s *Server) install(server *genericserver.GenericAPIServer, group Group, getter generic.RESTOptionsGetter) error {
	storage, err := group.Storage(s.scheme, getter)
	if err != nil {
		return err
	}
	info := genericserver.NewDefaultAPIGroupInfo(group.GroupVersion.Group, s.scheme, runtime.NewParameterCodec(s.scheme), s.codecs)
	info.VersionedResourcesStorageMap[group.GroupVersion.Version] = maps.Clone(storage)
	return server.InstallAPIGroup(&info)
}
