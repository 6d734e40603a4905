package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"weak"

	"github.com/emicklei/go-restful/v3"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/apiserver/pkg/util/responsewriter"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Document serves the OpenAPI documents of a server's groups. Call it after the groups are
// installed. The server's configuration must set SkipOpenAPIInstallation: upstream's service
// creates every document at startup and keeps it forever, as a model and as text, 60 MiB in all,
// although clients rarely request them. Document creates the version 3 documents at startup only
// for their hashes, which tell clients whether their copy is current, and then again on request. It
// creates the version 2 document, which recent clients do not read, for the first request and keeps
// it.
func Document(link *genericserver.GenericAPIServer, v2 *common.Config, v3 *common.OpenAPIV3Config) error {
	services := link.Handler.GoRestfulContainer.RegisteredWebServices()
	build := func() (*spec.Swagger, string, error) {
		swagger, err := builder.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices(services), v2)
		if err != nil {
			return nil, "", fmt.Errorf("describe API in OpenAPI 2: %w", err)
		}
		swagger.Definitions = handler.PruneDefaults(swagger.Definitions)
		return swagger, "constant", nil
	}
	handler.NewOpenAPIServiceLazy(cached.Once(cached.Func(build))).RegisterOpenAPIVersionedService("/openapi/v2", link.Handler.NonGoRestfulMux)

	documents := &documents{
		config: v3, services: map[string]*restful.WebService{}, recent: map[string]weak.Pointer[handler3.OpenAPIService]{},
	}
	for _, service := range services {
		documents.services[strings.TrimPrefix(service.RootPath(), "/")] = service
	}
	if err := documents.list(); err != nil {
		return err
	}
	link.Handler.NonGoRestfulMux.HandleFunc(documentsPath, documents.serveList)
	link.Handler.NonGoRestfulMux.HandlePrefix(documentsPath+"/", http.HandlerFunc(documents.serve))
	return nil
}

// documentsPath is the path of the list of version 3 documents. Each document is below it, by group
// version.
const documentsPath = "/openapi/v3"

// documents serves the version 3 documents.
type documents struct {
	config *common.OpenAPIV3Config
	// services are the documented services by path, such as "apis/apps/v1".
	services map[string]*restful.WebService
	// paths is the list of all documents, as JSON.
	paths []byte

	mu     sync.Mutex
	recent map[string]weak.Pointer[handler3.OpenAPIService]
}

// list creates the list of all documents with their hashes.
func (d *documents) list() error {
	all := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	request, err := http.NewRequest(http.MethodGet, documentsPath, nil)
	if err != nil {
		return fmt.Errorf("list OpenAPI documents: %w", err)
	}
	for path := range d.services {
		recorder := responsewriter.NewInMemoryResponseWriter()
		d.build(path).HandleDiscovery(recorder, request)
		var discovery handler3.OpenAPIV3Discovery
		if err := json.Unmarshal(recorder.Data(), &discovery); err != nil {
			return fmt.Errorf("list OpenAPI document of %q: %w", path, err)
		}
		for path, document := range discovery.Paths {
			all.Paths[path] = document
		}
	}
	if d.paths, err = json.Marshal(all); err != nil {
		return fmt.Errorf("list OpenAPI documents: %w", err)
	}
	return nil
}

func (d *documents) serveList(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(d.paths) // fails only if the client has disconnected
}

// serve sends one document in the same form and under the same conditions as upstream's service.
func (d *documents) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, documentsPath+"/")
	if d.services[path] == nil {
		http.NotFound(w, r)
		return
	}
	d.document(path).HandleGroupVersion(w, r)
}

// document returns the service of one document. It reuses the previous service if that is still in
// memory.
func (d *documents) document(path string) *handler3.OpenAPIService {
	d.mu.Lock()
	defer d.mu.Unlock()
	if recent := d.recent[path].Value(); recent != nil {
		return recent
	}
	service := d.build(path)
	d.recent[path] = weak.Make(service)
	return service
}

func (d *documents) build(path string) *handler3.OpenAPIService {
	container := restful.NewContainer()
	container.Add(d.services[path])
	return routes.OpenAPI{V3Config: d.config}.InstallV3(container, mux.NewPathRecorderMux("openapi"))
}
