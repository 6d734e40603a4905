package broker

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

// FuzzRequest checks that a platform's request is either rejected or decoded, and that a platform
// without impersonation permission cannot specify a privileged user.
func FuzzRequest(f *testing.F) {
	f.Add("2.13", "application/json", "kubernetes eyJ1c2VybmFtZSI6ImFubiJ9", `{"service_id":"a","parameters":{"A":"b"},"context":{"namespace":"shop"}}`)
	f.Add("2.13", "application/json", "kubernetes eyJ1c2VybmFtZSI6ImFubiIsImdyb3VwcyI6WyJzeXN0ZW06bWFzdGVycyJdfQ==", "{}")
	f.Add("2.", "", "kubernetes", "{")
	f.Add("3.0", "text/html;", "cf e30=", "[]")
	f.Add("2.99999999999999999999", "application/json; charset=\"", "Kubernetes e30=", `{"parameters":{"a":1}}`)
	deny := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "", nil
	})
	b := &broker{authorizer: deny}
	f.Fuzz(func(t *testing.T, version, media, identity, body string) {
		r := httptest.NewRequest(http.MethodPut, "/brokers/template.openshift.io/v2/service_instances/x", strings.NewReader(body))
		r.Header.Set(osbserver.VersionHeader, version)
		r.Header.Set("Content-Type", media)
		r.Header.Set(osbserver.IdentityHeader, identity)
		r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "platform"}))
		response := httptest.NewRecorder()
		osbserver.Serve(response, r, func(r *http.Request) (osbserver.Response, error) {
			info, err := osbserver.Originator(r, b.authorizer)
			if err != nil {
				return osbserver.Response{}, err
			}
			if info.GetName() == "" || strings.HasPrefix(info.GetName(), "system:") || slices.Contains(info.GetGroups(), user.SystemPrivilegedGroup) {
				t.Errorf("header %q names %+v", identity, info)
			}
			var request provisionRequest
			return osbserver.Response{Code: http.StatusOK, Body: struct{}{}}, osbserver.Read(r, &request)
		})
		if response.Code == http.StatusInternalServerError {
			t.Errorf("%q, %q, %q, %q: %s", version, media, identity, body, response.Body)
		}
	})
}
