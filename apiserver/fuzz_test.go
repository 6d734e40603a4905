package apiserver

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// FuzzLegacyPath checks that authorization attributes for a path without a group match the request
// that is served. They must contain the same namespace, resource and name, and the resource's
// group.
func FuzzLegacyPath(f *testing.F) {
	for _, seed := range []string{
		"/api/v1/namespaces/shop/routes/front", "/api/v1/routes", "/api/v1/watch/namespaces/shop/routes", "/api/v1/namespaces/shop/pods", "/api/v1/namespaces/routes",
		"/api/v1/namespaces/shop/routes/../../../../apis", "/api/v1//routes", "/api/v1/namespaces/shop/routes/front/status", "/api/v1/proxy/namespaces/shop/routes/x", "/oapi/v1/routes",
		"/api/v1/namespaces/shop/oapi-routes/front", "/api/v1/oapi-pods",
	} {
		f.Add(seed)
	}
	groups := map[string]string{"routes": "route.openshift.io", "buildconfigs": "build.openshift.io"}
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") {
			return
		}
		s := &Server{legacy: legacy{groups: groups}}
		reader := resolver{&request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis", "oapi"), GrouplessAPIPrefixes: sets.NewString("api", "oapi")}, &s.legacy}
		r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}, Header: http.Header{}}
		before, err := reader.NewRequestInfo(r)
		if err != nil {
			return
		}
		s.redirectLegacy(http.HandlerFunc(func(_ http.ResponseWriter, target *http.Request) {
			after, err := reader.NewRequestInfo(target)
			if err != nil {
				t.Fatalf("%q: %v", path, err)
			}
			if target.URL.Path == path {
				return
			}
			if before.Namespace != after.Namespace || strings.TrimPrefix(before.Resource, announcedPrefix) != after.Resource || before.Subresource != after.Subresource || before.Name != after.Name || before.Verb != after.Verb {
				t.Errorf("%q requests %+v, but %q requests %+v", path, before, target.URL.Path, after)
			}
			if after.IsResourceRequest && after.APIGroup != groups[after.Resource] {
				t.Errorf("%q has the group %q", target.URL.Path, after.APIGroup)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	})
}

// FuzzQuery checks that no URL query causes a panic.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"follow=true&tailLines=5&sinceTime=2020-01-01T00:00:00Z", "tailLines=99999999999999999999", "sinceTime=x&follow=", "version=-1&asFile=..", "%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		for _, options := range []any{&buildv1.BuildLogOptions{}, &buildv1.BinaryBuildRequestOptions{}} {
			_ = readQuery(query, reflect.ValueOf(options).Elem())
		}
	})
}
