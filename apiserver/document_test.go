package apiserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"weak"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
)

const widgets = "apis/example.com/v1"

// newDocuments returns the documents of one service with the given resources.
func newDocuments(t *testing.T, program string, resources ...string) *documents {
	t.Helper()
	service := new(restful.WebService).Path("/" + widgets).Produces(restful.MIME_JSON)
	for _, resource := range resources {
		service.Route(service.GET("/" + resource).Operation("list" + resource).To(func(*restful.Request, *restful.Response) {}))
	}
	d := &documents{
		config: &common.OpenAPIV3Config{
			GetDefinitions: func(common.ReferenceCallback) map[string]common.OpenAPIDefinition { return nil },
			GetOperationIDAndTagsFromRoute: func(route common.Route) (string, []string, error) {
				return route.OperationName(), nil, nil
			},
		},
		services: map[string]*restful.WebService{widgets: service},
		recent:   map[string]weak.Pointer[handler3.OpenAPIService]{},
	}
	if err := d.list(program); err != nil {
		t.Fatal(err)
	}
	return d
}

// address returns the document's URL in the list.
func address(t *testing.T, d *documents) string {
	t.Helper()
	w := httptest.NewRecorder()
	d.serveList(w, httptest.NewRequest(http.MethodGet, documentsPath, nil))
	var list handler3.OpenAPIV3Discovery
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		t.Fatalf("%v:\n%s", err, w.Body)
	}
	return list.Paths[widgets].ServerRelativeURL
}

func get(d *documents, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	d.serve(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

func TestListedDocumentIsCachedForYear(t *testing.T) {
	d := newDocuments(t, "program", "widgets")
	w := get(d, address(t, d))
	var document spec3.OpenAPI
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
		t.Fatalf("status %d: %v:\n%s", w.Code, err, w.Body)
	}
	if document.Paths.Paths["/"+widgets+"/widgets"] == nil {
		t.Errorf("the document lacks the route:\n%s", w.Body)
	}
	if got := w.Header().Get("Cache-Control"); got != "public, immutable" || w.Header().Get("Expires") == "" {
		t.Errorf("Cache-Control %q, Expires %q", got, w.Header().Get("Expires"))
	}
}

func TestDocumentWithoutHashIsNotCached(t *testing.T) {
	w := get(newDocuments(t, "program", "widgets"), documentsPath+"/"+widgets)
	if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "" {
		t.Errorf("status %d, Cache-Control %q", w.Code, w.Header().Get("Cache-Control"))
	}
}

func TestOldHashIsRedirected(t *testing.T) {
	d := newDocuments(t, "program", "widgets")
	w := get(d, documentsPath+"/"+widgets+"?hash=OLD")
	if location := w.Header().Get("Location"); w.Code != http.StatusMovedPermanently || location != address(t, d) {
		t.Errorf("status %d to %q, want %q", w.Code, location, address(t, d))
	}
}

func TestUnknownDocumentIsNotFound(t *testing.T) {
	if w := get(newDocuments(t, "program", "widgets"), documentsPath+"/apis/example.com/v2"); w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
}

func TestHashDependsOnProgramAndRoutes(t *testing.T) {
	first := address(t, newDocuments(t, "program", "widgets", "gadgets"))
	for name, test := range map[string]struct {
		documents *documents
		equal     bool
	}{
		"same":           {newDocuments(t, "program", "widgets", "gadgets"), true},
		"other order":    {newDocuments(t, "program", "gadgets", "widgets"), true},
		"other program":  {newDocuments(t, "program 2", "widgets", "gadgets"), false},
		"fewer routes":   {newDocuments(t, "program", "widgets"), false},
		"another route":  {newDocuments(t, "program", "widgets", "gadgets", "gears"), false},
		"renamed routes": {newDocuments(t, "program", "widgets", "gears"), false},
	} {
		if got := address(t, test.documents) == first; got != test.equal {
			t.Errorf("%s: equal is %t", name, got)
		}
	}
}

func TestProgramHasBuildID(t *testing.T) {
	id, err := buildID()
	if err != nil || !strings.Contains(id, "Go") {
		t.Errorf("build ID %q, %v", id, err)
	}
}
