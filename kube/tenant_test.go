package kube

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc/metadata"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// tenantOfContext returns the tenant that a request sends to etcd.
func tenantOfContext(r *http.Request) string {
	md, _ := metadata.FromOutgoingContext(r.Context())
	if values := md[tenantKey]; len(values) > 0 {
		return values[0]
	}
	return ""
}

func TestRequestHasItsTenant(t *testing.T) {
	const loopback = user.APIServerUser
	for name, c := range map[string]struct {
		caller, header string
		info           request.RequestInfo
		want           string
	}{
		"object in a project":        {"alice", "", request.RequestInfo{Namespace: "shop", Resource: "configmaps"}, "project shop"},
		"object by a controller":     {"system:serviceaccount:kube-system:job-controller", "", request.RequestInfo{Namespace: "shop", Resource: "pods"}, "project shop"},
		"import of an image":         {"alice", "", request.RequestInfo{Namespace: "shop", Resource: "imagestreamimports"}, "project shop"},
		"project":                    {"alice", "", request.RequestInfo{Resource: "projects", Name: "shop"}, "project shop"},
		"project request":            {"alice", "", request.RequestInfo{Resource: "projectrequests"}, "user alice"},
		"namespace by a request":     {loopback, "user+alice", request.RequestInfo{Resource: "namespaces"}, "user alice"},
		"object by a request":        {loopback, "user+alice", request.RequestInfo{Namespace: "shop", Resource: "rolebindings"}, "project shop"},
		"forged header":              {"mallory", "user+alice", request.RequestInfo{Resource: "projectrequests"}, "user mallory"},
		"service account of a user":  {"system:serviceaccount:shop:default", "", request.RequestInfo{Resource: "projectrequests"}, "project shop"},
		"user that is named images":  {"images", "", request.RequestInfo{Resource: "projectrequests"}, "user images"},
		"project named images":       {"alice", "", request.RequestInfo{Namespace: "images", Resource: "configmaps"}, "project images"},
		"platform's namespace":       {"alice", "", request.RequestInfo{Namespace: "kube-system", Resource: "configmaps"}, ""},
		"default namespace":          {"alice", "", request.RequestInfo{Namespace: "default", Resource: "services"}, ""},
		"name like the platform's":   {"alice", "", request.RequestInfo{Namespace: "kubeshop", Resource: "services"}, "project kubeshop"},
		"node":                       {"system:node:a", "", request.RequestInfo{Resource: "nodes", Name: "a"}, ""},
		"platform's service account": {"system:serviceaccount:openshift-infra:a", "", request.RequestInfo{Resource: "images"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/", nil)
			r.Header.Set(tenantHeader, c.header)
			ctx := request.WithRequestInfo(request.WithUser(r.Context(), &user.DefaultInfo{Name: c.caller}), &c.info)
			got := "no request"
			markTenant(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = tenantOfContext(r) })).
				ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
			if got != c.want {
				t.Errorf("the tenant is %q, want %q", got, c.want)
			}
		})
	}
}

func TestRequestOfServerToItselfCarriesTenant(t *testing.T) {
	for _, tenant := range []string{"user \u00dcmit Jos\u00e9", ""} {
		var info request.RequestInfo
		got := "no request"
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ctx := request.WithRequestInfo(request.WithUser(r.Context(), &user.DefaultInfo{Name: user.APIServerUser}), &info)
			markTenant(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = tenantOfContext(r) })).ServeHTTP(nil, r.WithContext(ctx))
		}))
		defer server.Close()
		ctx := t.Context()
		if tenant != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, tenantKey, tenant)
		}
		r, err := http.NewRequestWithContext(ctx, "GET", server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := carryTenant(http.DefaultTransport).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got != tenant || r.Header.Get(tenantHeader) != "" {
			t.Errorf("the tenant is %q, want %q; the caller's request has %v", got, tenant, r.Header)
		}
	}
}
