package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	genericserver "k8s.io/apiserver/pkg/server"
)

func TestRedirectLegacyMovesOldPaths(t *testing.T) {
	s := &Server{legacy: legacy{groups: map[string]string{"routes": "route.openshift.io"}}}
	target := s.redirectLegacy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.URL.Path)) }))
	for path, want := range map[string]string{
		"/api/v1/namespaces/shop/routes":              "/oapi/v1/namespaces/shop/routes",
		"/api/v1/namespaces/shop/routes/front/status": "/oapi/v1/namespaces/shop/routes/front/status",
		"/api/v1/routes":                              "/oapi/v1/routes",
		"/api/v1/watch/namespaces/shop/routes":        "/oapi/v1/watch/namespaces/shop/routes",
		"/api/v1/namespaces/routes":                   "/api/v1/namespaces/routes",
		"/api/v1/namespaces/routes/pods":              "/api/v1/namespaces/routes/pods",
		"/api/v1/namespaces/shop/pods/routes":         "/api/v1/namespaces/shop/pods/routes",
		"/apis/route.openshift.io/v1/routes":          "/apis/route.openshift.io/v1/routes",
		"/api/v1":                                     "/api/v1",
		"/api/v1/namespaces/shop/oapi-routes/front":   "/oapi/v1/namespaces/shop/routes/front",
		"/api/v1/oapi-routes":                         "/oapi/v1/routes",
		"/api/v1/namespaces/shop/oapi-pods":           "/api/v1/namespaces/shop/oapi-pods",
		"/api/v1/watch":                               "/api/v1/watch",
	} {
		resp := httptest.NewRecorder()
		target.ServeHTTP(resp, httptest.NewRequest(http.MethodGet, path, nil))
		if got := resp.Body.String(); got != want {
			t.Errorf("%s is redirected to %s, want %s", path, got, want)
		}
	}
}

func TestResolverSetsGroupOfOldNames(t *testing.T) {
	s := &Server{legacy: legacy{groups: map[string]string{"routes": "route.openshift.io"}}}
	config := &genericserver.Config{}
	s.Resolve(config)
	for path, want := range map[string]string{
		"/oapi/v1/namespaces/shop/routes/front":       "route.openshift.io",
		"/oapi/v1/namespaces/shop/unheardofs":         "",
		"/api/v1/namespaces/shop/pods":                "",
		"/apis/apps/v1/namespaces/shop/deployments/a": "apps",
	} {
		info, err := config.RequestInfoResolver.NewRequestInfo(httptest.NewRequest(http.MethodGet, path, nil))
		if err != nil || !info.IsResourceRequest || info.APIGroup != want || info.Namespace != "shop" {
			t.Errorf("%s is %+v, %v", path, info, err)
		}
	}
}

func TestAdmissionSeesGroup(t *testing.T) {
	l := legacyAdmission{legacy: &legacy{groups: map[string]string{"routes": "route.openshift.io", "deploymentconfigs": "apps.openshift.io"}}}
	attributes := func(resource, kind schema.GroupVersion, name string) admission.Attributes {
		return l.withGroup(admission.NewAttributesRecord(nil, nil, kind.WithKind("Kind"), "shop", "front", resource.WithResource(name), "", admission.Create, nil, false, nil))
	}
	old := schema.GroupVersion{Version: "v1"}
	if got := attributes(old, old, "routes"); got.GetResource().Group != "route.openshift.io" || got.GetKind().Group != "route.openshift.io" {
		t.Errorf("route is %s, %s", got.GetResource(), got.GetKind())
	}
	if got := attributes(old, schema.GroupVersion{Group: "autoscaling", Version: "v1"}, "deploymentconfigs"); got.GetKind().Group != "autoscaling" {
		t.Errorf("scale is %s", got.GetKind())
	}
	if got := attributes(old, old, "pods"); got.GetResource().Group != "" {
		t.Errorf("pod is %s", got.GetResource())
	}
}
