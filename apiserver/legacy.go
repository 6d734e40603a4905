package apiserver

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
)

// Before OpenShift 3.6, resources had no groups: they were served below /oapi, in version v1 of the
// empty group. These paths still work and serve the same objects with the old apiVersion. In these
// requests, authorization, admission and audit see the resource's group, so roles and quotas do not
// have to include the empty group.

// legacyPrefix is the path prefix of resources without a group.
const legacyPrefix = "/oapi"

// corePath is the path of Kubernetes' core group.
const corePath = "/api/v1"

// legacyVersion is the version of kinds without a group.
var legacyVersion = schema.GroupVersion{Version: "v1"}

// legacy contains the resources that are also served without a group, and their groups.
type legacy struct {
	storage map[string]rest.Storage
	groups  map[string]string
}

// add adds a group's resources whose kinds OpenShift 3 also served without a group.
func (l *legacy) add(scheme *runtime.Scheme, group string, served map[string]rest.Storage) {
	for name, storage := range served {
		kinds, _, err := scheme.ObjectKinds(storage.New())
		if err != nil {
			continue
		}
		for _, kind := range kinds {
			_, ok := storage.(rest.GroupVersionKindProvider)
			if kind.GroupVersion() == legacyVersion || ok {
				l.storage[name] = storage
				l.groups[strings.Split(name, "/")[0]] = group
			}
		}
	}
}

// serveLegacy serves the resources without a group below /oapi.
func (s *Server) serveLegacy(server *genericserver.GenericAPIServer) error {
	info := genericserver.NewDefaultAPIGroupInfo("", s.scheme, runtime.NewParameterCodec(s.scheme), s.codecs)
	info.PrioritizedVersions = []schema.GroupVersion{legacyVersion}
	info.VersionedResourcesStorageMap[legacyVersion.Version] = maps.Clone(s.legacy.storage)
	if err := server.InstallLegacyAPIGroup(legacyPrefix, &info); err != nil {
		return fmt.Errorf("serve %s: %w", legacyPrefix, err)
	}
	// The generic server lists versions only at /api, so this handler lists them at /oapi.
	server.Handler.NonGoRestfulMux.HandleFunc(legacyPrefix, func(w http.ResponseWriter, r *http.Request) {
		responsewriters.WriteObjectNegotiated(s.codecs, negotiation.DefaultEndpointRestrictions, schema.GroupVersion{}, w, r, http.StatusOK,
			&metav1.APIVersions{Versions: []string{legacyVersion.Version}}, false)
	})
	return nil
}

// Resolve configures the server to map paths below /oapi to requests in the resources' groups.
func (s *Server) Resolve(config *genericserver.Config) {
	config.LegacyAPIGroupPrefixes = sets.NewString(genericserver.DefaultLegacyAPIPrefix, legacyPrefix)
	config.RequestInfoResolver = resolver{genericserver.NewRequestInfoResolver(config), &s.legacy}
}

// resolver replaces the empty group of requests below /oapi with the resource's group.
type resolver struct {
	request.RequestInfoResolver
	legacy *legacy
}

// NewRequestInfo returns the request info with the resource's group.
func (r resolver) NewRequestInfo(req *http.Request) (*request.RequestInfo, error) {
	info, err := r.RequestInfoResolver.NewRequestInfo(req)
	if err == nil && info.IsResourceRequest && "/"+info.APIPrefix == legacyPrefix {
		info.APIGroup = r.legacy.groups[info.Resource]
	}
	return info, err
}

// redirectLegacy serves requests for OpenShift resources below /api/v1 from /oapi/v1. The first
// OpenShift 3 clients expect the resources below /api/v1, and discovery announces them there.
func (s *Server) redirectLegacy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, ok := s.legacy.path(r.URL.Path)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		target := *r.URL
		target.Path, target.RawPath = path, ""
		changed := r.WithContext(r.Context())
		changed.URL = &target
		next.ServeHTTP(w, changed)
	})
}

// path converts a path below /api/v1 to the same path below /oapi/v1. It returns false if the
// resource is not an OpenShift resource.
func (l *legacy) path(of string) (string, bool) {
	rest, below := strings.CutPrefix(of, corePath+"/")
	if !below {
		return "", false
	}
	parts := strings.Split(rest, "/")
	position := resourceIndex(parts)
	resource := strings.TrimPrefix(parts[position], announcedPrefix)
	if l.groups[resource] == "" {
		return "", false
	}
	parts[position] = resource
	return legacyPrefix + "/v1/" + strings.Join(parts, "/"), true
}

// resourceIndex returns the index of the resource in a path below an API version, such as
// "namespaces/shop/routes/front".
func resourceIndex(parts []string) int {
	first := 0
	if parts[0] == "watch" && len(parts) > 1 {
		first = 1
	}
	if parts[first] == "namespaces" && len(parts) > first+2 {
		return first + 2
	}
	return first
}

// legacyAdmission sets the resource's group in the admission attributes of requests below /oapi.
type legacyAdmission struct {
	admission.Interface
	legacy *legacy
}

var (
	_ admission.MutationInterface   = legacyAdmission{}
	_ admission.ValidationInterface = legacyAdmission{}
)

// Admit runs the mutating plugins.
func (l legacyAdmission) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if chain, ok := l.Interface.(admission.MutationInterface); ok {
		return chain.Admit(ctx, l.withGroup(a), o)
	}
	return nil
}

// Validate runs the validating plugins.
func (l legacyAdmission) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if chain, ok := l.Interface.(admission.ValidationInterface); ok {
		return chain.Validate(ctx, l.withGroup(a), o)
	}
	return nil
}

func (l legacyAdmission) withGroup(a admission.Attributes) admission.Attributes {
	group := l.legacy.groups[a.GetResource().Resource]
	if a.GetResource().Group != "" || group == "" {
		return a
	}
	return namedAttributes{a, group}
}

// namedAttributes contains the attributes of a request below /oapi, with the resource's group.
type namedAttributes struct {
	admission.Attributes
	group string
}

// GetResource returns the resource in its group.
func (n namedAttributes) GetResource() schema.GroupVersionResource {
	resource := n.Attributes.GetResource()
	resource.Group = n.group
	return resource
}

// GetKind adds the group to a kind that has none, as in the legacy API. A kind that already has a
// group, such as Scale, is returned unchanged.
func (n namedAttributes) GetKind() schema.GroupVersionKind {
	kind := n.Attributes.GetKind()
	if kind.Group == "" {
		kind.Group = n.group
	}
	return kind
}
