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

// Document serves the OpenAPI documents of a link's groups, once these are installed. The link's configuration says SkipOpenAPIInstallation:
// upstream's own service makes every document at the start and keeps it for good, as a model and as text, 60 MiB in all. They are asked
// for seldom. Here the documents of version 3 are made at the start only for their hashes, by which clients know whether they have the present
// one, and then again for whoever asks; those of version 2, which recent clients do not read, are made for the first who asks and kept.
func Document(link *genericserver.GenericAPIServer, v2 *common.Config, v3 *common.OpenAPIV3Config) error {
	services := link.Handler.GoRestfulContainer.RegisteredWebServices()
	build := func() (*spec.Swagger, string, error) {
		swagger, err := builder.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices(services), v2)
		if err != nil {
			return nil, "", fmt.Errorf("describe API in OpenAPI 2: %w", err)
		}
		swagger.Definitions = handler.PruneDefaults(swagger.Definitions)
		return swagger, "made once", nil
	}
	handler.NewOpenAPIServiceLazy(cached.Once(cached.Func(build))).RegisterOpenAPIVersionedService("/openapi/v2", link.Handler.NonGoRestfulMux)

	documents := &documents{config: v3, services: map[string]*restful.WebService{}, recent: map[string]weak.Pointer[handler3.OpenAPIService]{}}
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

// documentsPath is where the list of the documents of version 3 is, and below it each by its group version.
const documentsPath = "/openapi/v3"

// documents are those of version 3.
type documents struct {
	config *common.OpenAPIV3Config
	// services are what is described, by their paths, such as "apis/apps/v1".
	services map[string]*restful.WebService
	// paths is the list of all, in JSON.
	paths []byte

	mu     sync.Mutex
	recent map[string]weak.Pointer[handler3.OpenAPIService]
}

// list makes the list with the hash of each document.
func (d *documents) list() error {
	all := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	request, err := http.NewRequest(http.MethodGet, documentsPath, nil)
	if err != nil {
		return fmt.Errorf("list OpenAPI documents: %w", err)
	}
	for path := range d.services {
		answer := responsewriter.NewInMemoryResponseWriter()
		d.make(path).HandleDiscovery(answer, request)
		var one handler3.OpenAPIV3Discovery
		if err := json.Unmarshal(answer.Data(), &one); err != nil {
			return fmt.Errorf("list OpenAPI document of %q: %w", path, err)
		}
		for path, document := range one.Paths {
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
	_, _ = w.Write(d.paths) // nobody is left to tell
}

// serve answers with one document, in the form and under the conditions that upstream's service does.
func (d *documents) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, documentsPath+"/")
	if d.services[path] == nil {
		http.NotFound(w, r)
		return
	}
	d.document(path).HandleGroupVersion(w, r)
}

// document is the service that has one document, the last one if it is still in memory.
func (d *documents) document(path string) *handler3.OpenAPIService {
	d.mu.Lock()
	defer d.mu.Unlock()
	if made := d.recent[path].Value(); made != nil {
		return made
	}
	made := d.make(path)
	d.recent[path] = weak.Make(made)
	return made
}

func (d *documents) make(path string) *handler3.OpenAPIService {
	container := restful.NewContainer()
	container.Add(d.services[path])
	return routes.OpenAPI{V3Config: d.config}.InstallV3(container, mux.NewPathRecorderMux("openapi"))
}
