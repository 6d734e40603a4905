package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/responsewriter"
)

// Clients use discovery to find the path for a manifest's kind. The core group therefore also
// announces the kinds that OpenShift 3 served without a group. Otherwise, clients could not resolve
// `apiVersion: v1, kind: Route`.

// announcedPrefix is prepended to the names of these resources in discovery. Therefore, a name that
// a user types, as in `get routes`, still refers to the resource in its group. The announced
// resources have no verbs, categories or short names. Otherwise, code that processes all resources
// with a certain verb would process each object twice. Examples are garbage collection, namespace
// deletion, quotas, `get all` and `api-resources`.
const announcedPrefix = "oapi-"

// Announce adds the kinds without a group to the discovery of the core group. core is the server of
// the core group. Announce must be called once, after Link and before the server accepts requests.
func (s *Server) Announce(core *genericserver.GenericAPIServer) error {
	resources, err := coreResources(core)
	if err != nil {
		return fmt.Errorf("list core group resources: %w", err)
	}
	s.announced = append(resources, s.legacy.resources(s.kindOf)...)
	aggregated, err := endpoints.ConvertGroupVersionIntoToDiscovery(s.announced)
	if err != nil {
		return fmt.Errorf("announce kinds without a group: %w", err)
	}
	core.AggregatedLegacyDiscoveryGroupManager.AddGroupVersion(legacyVersion.Group, apidiscoveryv2.APIVersionDiscovery{
		Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Version: legacyVersion.Version, Resources: aggregated,
	})
	return nil
}

// coreResources returns the resources that Kubernetes serves in the core group.
func coreResources(core *genericserver.GenericAPIServer) ([]metav1.APIResource, error) {
	request, err := http.NewRequest(http.MethodGet, corePath, nil)
	if err != nil {
		return nil, err
	}
	resp := responsewriter.NewInMemoryResponseWriter()
	core.Handler.GoRestfulContainer.ServeHTTP(resp, request)
	var list metav1.APIResourceList
	if err := json.Unmarshal(resp.Data(), &list); err != nil {
		return nil, err
	}
	if len(list.APIResources) == 0 {
		return nil, fmt.Errorf("%s has no resources", corePath)
	}
	return list.APIResources, nil
}

// resources returns the discovery entries of the resources without a group, sorted by name.
func (l *legacy) resources(kindOf func(rest.Storage) string) []metav1.APIResource {
	var resources []metav1.APIResource
	for _, name := range slices.Sorted(maps.Keys(l.storage)) {
		storage := l.storage[name]
		scoper, ok := storage.(rest.Scoper)
		if strings.Contains(name, "/") || !ok {
			continue
		}
		resource := metav1.APIResource{
			Name: announcedPrefix + name, Namespaced: scoper.NamespaceScoped(), Kind: kindOf(storage), Verbs: metav1.Verbs{},
		}
		resource.SingularName = announcedPrefix + strings.ToLower(resource.Kind)
		resources = append(resources, resource)
	}
	return resources
}

// kindOf returns a resource's kind.
func (s *Server) kindOf(storage rest.Storage) string {
	kinds, _, err := s.scheme.ObjectKinds(storage.New())
	if err != nil {
		return "" // cannot happen: the kind of served storage is registered
	}
	return kinds[0].Kind
}

// Serve wraps the front server's API. For clients that do not request aggregated discovery, Serve
// itself serves the discovery document of the core group.
func (s *Server) Serve(next http.Handler) http.Handler {
	core := discovery.NewAPIVersionHandler(s.codecs, legacyVersion, discovery.APIResourceListerFunc(func() []metav1.APIResource { return s.announced }))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.TrimSuffix(r.URL.Path, "/") == corePath {
			core.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
