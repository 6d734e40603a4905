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

// Before OpenShift 3.6 its resources had no groups: they were served below /oapi, in the version v1 of
// the nameless group. Those paths answer still, with the same objects in the old apiVersion. To
// authorization, admission and audit such a request is one for the resource's group, so that roles and
// quotas need not know the old name.

// legacyPrefix is where resources without a group are.
const legacyPrefix = "/oapi"

// legacyVersion is the version of kinds without a group.
var legacyVersion = schema.GroupVersion{Version: "v1"}

// legacy are the resources that have an old name, with their groups.
type legacy struct {
	storage map[string]rest.Storage
	groups  map[string]string
}

// add takes the resources of a group whose kinds had an old name.
func (l *legacy) add(scheme *runtime.Scheme, group string, served map[string]rest.Storage) {
	for name, storage := range served {
		kinds, _, err := scheme.ObjectKinds(storage.New())
		if err != nil {
			continue
		}
		for _, kind := range kinds {
			_, own := storage.(rest.GroupVersionKindProvider)
			if kind.GroupVersion() == legacyVersion || own {
				l.storage[name] = storage
				l.groups[strings.Split(name, "/")[0]] = group
			}
		}
	}
}

// serveLegacy serves what has an old name below /oapi.
func (s *Server) serveLegacy(server *genericserver.GenericAPIServer) error {
	info := genericserver.NewDefaultAPIGroupInfo("", s.scheme, runtime.NewParameterCodec(s.scheme), s.codecs)
	info.PrioritizedVersions = []schema.GroupVersion{legacyVersion}
	info.VersionedResourcesStorageMap[legacyVersion.Version] = maps.Clone(s.legacy.storage)
	if err := server.InstallLegacyAPIGroup(legacyPrefix, &info); err != nil {
		return fmt.Errorf("serve %s: %w", legacyPrefix, err)
	}
	// The generic server announces versions at /api alone.
	server.Handler.NonGoRestfulMux.HandleFunc(legacyPrefix, func(w http.ResponseWriter, r *http.Request) {
		responsewriters.WriteObjectNegotiated(s.codecs, negotiation.DefaultEndpointRestrictions, schema.GroupVersion{}, w, r, http.StatusOK,
			&metav1.APIVersions{Versions: []string{legacyVersion.Version}}, false)
	})
	return nil
}

// Resolve makes a configuration take paths below /oapi for requests of the groups that they stand for.
func (s *Server) Resolve(config *genericserver.Config) {
	config.LegacyAPIGroupPrefixes = sets.NewString(genericserver.DefaultLegacyAPIPrefix, legacyPrefix)
	config.RequestInfoResolver = resolver{genericserver.NewRequestInfoResolver(config), &s.legacy}
}

// resolver names the group of a request that does not.
type resolver struct {
	request.RequestInfoResolver
	legacy *legacy
}

// NewRequestInfo reads what is asked for.
func (r resolver) NewRequestInfo(req *http.Request) (*request.RequestInfo, error) {
	info, err := r.RequestInfoResolver.NewRequestInfo(req)
	if err == nil && info.IsResourceRequest && "/"+info.APIPrefix == legacyPrefix {
		info.APIGroup = r.legacy.groups[info.Resource]
	}
	return info, err
}

// redirectLegacy brings requests for our resources below /api/v1, where the first clients had them, to /oapi/v1.
func (s *Server) redirectLegacy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const from, to = "/api/v1/", legacyPrefix + "/v1/"
		rest, below := strings.CutPrefix(r.URL.Path, from)
		if !below || s.legacy.groups[resourceOf(rest)] == "" {
			next.ServeHTTP(w, r)
			return
		}
		moved := *r.URL
		moved.Path, moved.RawPath = to+rest, ""
		changed := r.WithContext(r.Context())
		changed.URL = &moved
		next.ServeHTTP(w, changed)
	})
}

// resourceOf is the resource of a path below a version, such as "namespaces/shop/routes/front".
func resourceOf(path string) string {
	parts := strings.Split(strings.TrimPrefix(path, "watch/"), "/")
	if parts[0] == "namespaces" && len(parts) > 2 {
		return parts[2]
	}
	return parts[0]
}

// legacyAdmission shows admission the group that a request below /oapi stands for.
type legacyAdmission struct {
	admission.Interface
	legacy *legacy
}

var (
	_ admission.MutationInterface   = legacyAdmission{}
	_ admission.ValidationInterface = legacyAdmission{}
)

// Admit lets the plug-ins change an object.
func (l legacyAdmission) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if chain, ok := l.Interface.(admission.MutationInterface); ok {
		return chain.Admit(ctx, l.named(a), o)
	}
	return nil
}

// Validate lets the plug-ins refuse an object.
func (l legacyAdmission) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if chain, ok := l.Interface.(admission.ValidationInterface); ok {
		return chain.Validate(ctx, l.named(a), o)
	}
	return nil
}

func (l legacyAdmission) named(a admission.Attributes) admission.Attributes {
	group := l.legacy.groups[a.GetResource().Resource]
	if a.GetResource().Group != "" || group == "" {
		return a
	}
	return namedAttributes{a, group}
}

// namedAttributes are attributes with a group.
type namedAttributes struct {
	admission.Attributes
	group string
}

// GetResource is the resource in its group.
func (n namedAttributes) GetResource() schema.GroupVersionResource {
	resource := n.Attributes.GetResource()
	resource.Group = n.group
	return resource
}

// GetKind is the kind in its group; a kind of another group, such as Scale, has it already.
func (n namedAttributes) GetKind() schema.GroupVersionKind {
	kind := n.Attributes.GetKind()
	if kind.Group == "" {
		kind.Group = n.group
	}
	return kind
}
