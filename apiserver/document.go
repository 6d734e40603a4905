package apiserver

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/emicklei/go-restful/v3"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Document serves the OpenAPI documents of a server's groups. It must be called after the groups
// have been installed. The server's configuration must set SkipOpenAPIInstallation. Upstream's
// service would create every document at startup and keep it forever, as a model and as text (60
// MiB in total), although clients rarely request documents. Document creates a version 3 document
// on request. It creates the version 2 document, which recent clients do not read, on the first
// request and keeps it. It returns an error if the program has no Go build ID.
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
	program, err := buildID()
	if err != nil {
		return err
	}
	if err := documents.list(program); err != nil {
		return err
	}
	link.Handler.NonGoRestfulMux.HandleFunc(documentsPath, documents.serveList)
	link.Handler.NonGoRestfulMux.HandlePrefix(documentsPath+"/", http.HandlerFunc(documents.serve))
	return nil
}

// documentsPath is the path of the list of version 3 documents. The path of a document consists of
// documentsPath and the path of its group version, such as apis/apps/v1.
const documentsPath = "/openapi/v3"

// documents serves the version 3 documents.
type documents struct {
	config *common.OpenAPIV3Config
	// services maps paths, such as "apis/apps/v1", to the documented services.
	services map[string]*restful.WebService
	// hashes maps the documents' paths to their hashes.
	hashes map[string]string
	// paths is the list of all documents, as JSON.
	paths []byte

	mu     sync.Mutex
	recent map[string]weak.Pointer[handler3.OpenAPIService]
}

// list creates the list of all documents and their hashes. Clients use the hashes to check whether
// their copy is current. Upstream hashes the text of a document. Slipway hashes the program and the
// document's routes, which determine the text, so it does not have to create the documents.
func (d *documents) list(program string) error {
	all := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	d.hashes = make(map[string]string, len(d.services))
	for path, service := range d.services {
		d.hashes[path] = hashRoutes(program, service)
		all.Paths[path] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: d.url(path)}
	}
	var err error
	if d.paths, err = json.Marshal(all); err != nil {
		return fmt.Errorf("list OpenAPI documents: %w", err)
	}
	return nil
}

// buildID returns this program's Go build ID, which depends on the content of the program.
func buildID() (string, error) {
	program, err := elf.Open("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("read build ID of this program: %w", err)
	}
	defer program.Close()
	note := program.Section(".note.go.buildid")
	if note == nil {
		return "", errors.New("read build ID of this program: it has none; build it without -buildid=")
	}
	content, err := note.Data()
	if err != nil {
		return "", fmt.Errorf("read build ID of this program: %w", err)
	}
	return string(content), nil
}

// hashRoutes returns a hash of a program and a service's routes. The hash does not depend on the
// order of the routes.
func hashRoutes(program string, service *restful.WebService) string {
	var routes []string
	for _, route := range service.Routes() {
		routes = append(routes, fmt.Sprintf("%s %s %q %q", route.Method, route.Path, route.Consumes, route.Produces))
	}
	slices.Sort(routes)
	return fmt.Sprintf("%X", sha256.Sum256([]byte(program+"\n"+strings.Join(routes, "\n"))))
}

// url returns a document's current URL.
func (d *documents) url(path string) string {
	return documentsPath + "/" + path + "?" + url.Values{"hash": {d.hashes[path]}}.Encode()
}

func (d *documents) serveList(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(d.paths) // this fails only if the client has disconnected
}

// serve sends one document. As with upstream's service, a client can cache a document for a year if
// it requested the document by hash. If the hash is stale, the client is redirected to the current
// document.
func (d *documents) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, documentsPath+"/")
	if d.services[path] == nil {
		http.NotFound(w, r)
		return
	}
	if hash := r.URL.Query().Get("hash"); hash != "" {
		if hash != d.hashes[path] {
			http.Redirect(w, r, d.url(path), http.StatusMovedPermanently)
			return
		}
		w = immutable{w}
		// Remove the hash from the query, because upstream's service would compare it with its own
		// hash.
		r = r.Clone(r.Context())
		r.URL.RawQuery = ""
	}
	d.document(path).HandleGroupVersion(w, r)
}

// immutable allows clients to cache successful responses for a year.
type immutable struct{ http.ResponseWriter }

func (w immutable) WriteHeader(code int) {
	if code == http.StatusOK || code == http.StatusNotModified {
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().UTC().AddDate(1, 0, 0).Format(http.TimeFormat))
	}
	w.ResponseWriter.WriteHeader(code)
}

// document returns the service for one document. It reuses the previous service if it is still in
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
