package kube

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/internal/tenant"
)

// requester returns the requester of projects whose names begin with "requested".
func requester(project string) string {
	if strings.HasPrefix(project, "requested") {
		return "alice"
	}
	return ""
}

func TestRequestHasTenant(t *testing.T) {
	const loopback = user.APIServerUser
	for name, c := range map[string]struct {
		caller, header string
		info           request.RequestInfo
		want           tenant.Mark
	}{
		"object in a project":                     {"alice", "", request.RequestInfo{Namespace: "shop", Resource: "configmaps"}, tenant.Mark{Name: "project shop"}},
		"object in a user's project":              {"bob", "", request.RequestInfo{Namespace: "requested", Resource: "configmaps"}, tenant.Mark{Name: "project requested", Owner: "user alice"}},
		"account of the user's project":           {"system:serviceaccount:requested:default", "", request.RequestInfo{Resource: "projectrequests"}, tenant.Mark{Name: "project requested", Owner: "user alice"}},
		"object by an account of the project":     {"system:serviceaccount:shop:default", "", request.RequestInfo{Namespace: "shop", Resource: "pods"}, tenant.Mark{Name: "project shop"}},
		"object by an account of another project": {"system:serviceaccount:evil:default", "", request.RequestInfo{Namespace: "shop", Resource: "pods"}, tenant.Mark{Name: "project shop"}},
		"object by a controller":                  {"system:serviceaccount:kube-system:job-controller", "", request.RequestInfo{Namespace: "shop", Resource: "pods"}, tenant.Mark{Name: "project shop", NoWait: true}},
		"object by the scheduler":                 {"system:kube-scheduler", "", request.RequestInfo{Namespace: "shop", Resource: "pods"}, tenant.Mark{Name: "project shop", NoWait: true}},
		"object by a node":                        {"system:node:a", "", request.RequestInfo{Namespace: "shop", Resource: "pods"}, tenant.Mark{Name: "project shop", NoWait: true}},
		"object by the server":                    {loopback, "", request.RequestInfo{Namespace: "shop", Resource: "resourcequotas"}, tenant.Mark{Name: "project shop", NoWait: true}},
		"webhook":                                 {user.Anonymous, "", request.RequestInfo{Namespace: "shop", Resource: "buildconfigs"}, tenant.Mark{Name: "project shop"}},
		"import of an image":                      {"alice", "", request.RequestInfo{Namespace: "shop", Resource: "imagestreamimports"}, tenant.Mark{Name: "project shop"}},
		"project":                                 {"alice", "", request.RequestInfo{Resource: "projects", Name: "shop"}, tenant.Mark{Name: "project shop"}},
		"project request":                         {"alice", "", request.RequestInfo{Resource: "projectrequests"}, tenant.Mark{Name: "user alice"}},
		"namespace by a request":                  {loopback, "user+alice", request.RequestInfo{Resource: "namespaces"}, tenant.Mark{Name: "user alice"}},
		"object by a request":                     {loopback, "user+alice", request.RequestInfo{Namespace: "shop", Resource: "rolebindings"}, tenant.Mark{Name: "project shop"}},
		"forged header":                           {"mallory", "user+alice", request.RequestInfo{Resource: "projectrequests"}, tenant.Mark{Name: "user mallory"}},
		"service account of a user":               {"system:serviceaccount:shop:default", "", request.RequestInfo{Resource: "projectrequests"}, tenant.Mark{Name: "project shop"}},
		"user that is named images":               {"images", "", request.RequestInfo{Resource: "projectrequests"}, tenant.Mark{Name: "user images"}},
		"anonymous":                               {user.Anonymous, "", request.RequestInfo{Resource: "projectrequests"}, tenant.Mark{Name: "user system:anonymous"}},
		"project named images":                    {"alice", "", request.RequestInfo{Namespace: "images", Resource: "configmaps"}, tenant.Mark{Name: "project images"}},
		"platform's namespace":                    {"alice", "", request.RequestInfo{Namespace: "kube-system", Resource: "configmaps"}, tenant.Mark{}},
		"default namespace":                       {"alice", "", request.RequestInfo{Namespace: "default", Resource: "services"}, tenant.Mark{}},
		"name that resembles the platform's":      {"alice", "", request.RequestInfo{Namespace: "kubeshop", Resource: "services"}, tenant.Mark{Name: "project kubeshop"}},
		"node":                                    {"system:node:a", "", request.RequestInfo{Resource: "nodes", Name: "a"}, tenant.Mark{}},
		"platform's service account":              {"system:serviceaccount:openshift-infra:a", "", request.RequestInfo{Resource: "projects"}, tenant.Mark{}},
		"record of an image":                      {masterUser, "", request.RequestInfo{APIGroup: imagev1.GroupName, Resource: "images"}, tenant.Mark{Name: recordTenant, NoWait: true}},
		"deletion":                                {"alice", "", request.RequestInfo{Verb: "delete", Namespace: "shop", Resource: "pods"}, tenant.Mark{Name: "project shop", Deletes: true}},
		"deletion of a list":                      {"alice", "", request.RequestInfo{Verb: "deletecollection", Namespace: "shop", Resource: "pods"}, tenant.Mark{Name: "project shop", Deletes: true}},
		"record by an administrator":              {"system:admin", "", request.RequestInfo{APIGroup: imagev1.GroupName, Resource: "images"}, tenant.Mark{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/", nil)
			r.Header.Set(tenantHeader, c.header)
			ctx := request.WithRequestInfo(request.WithUser(r.Context(), &user.DefaultInfo{Name: c.caller}), &c.info)
			got := tenant.Mark{Name: "no request"}
			markTenant(requester, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = tenant.Outgoing(r.Context()) })).
				ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
			if got != c.want {
				t.Errorf("the tenant is %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestRequestOfLoginPageHasTenant(t *testing.T) {
	var got tenant.Mark
	markPublic(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = tenant.Outgoing(r.Context()) })).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/oauth/authorize", nil))
	if want := (tenant.Mark{Name: tenant.Public}); got != want {
		t.Errorf("the tenant is %+v, want %+v", got, want)
	}
}

func TestRequestOfServerToItselfCarriesTenant(t *testing.T) {
	for _, mark := range []tenant.Mark{{Name: "user \u00dcmit Jos\u00e9"}, {Name: "image records", NoWait: true}, {}} {
		var info request.RequestInfo
		got := tenant.Mark{Name: "no request"}
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ctx := request.WithRequestInfo(request.WithUser(r.Context(), &user.DefaultInfo{Name: user.APIServerUser}), &info)
			markTenant(requester, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = tenant.Outgoing(r.Context()) })).ServeHTTP(nil, r.WithContext(ctx))
		}))
		defer server.Close()
		r, err := http.NewRequestWithContext(mark.With(t.Context()), "GET", server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := carryTenant(http.DefaultTransport).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got != mark || r.Header.Get(tenantHeader) != "" {
			t.Errorf("the tenant is %+v, want %+v; the caller's request has %v", got, mark, r.Header)
		}
	}
}

func TestCostIsCountedForSender(t *testing.T) {
	for _, c := range []struct {
		name, group, want string
	}{
		{"alice", "", "user alice"},
		{"system:serviceaccount:requested:default", "", "user alice"},
		{"system:serviceaccount:shop:default", "", "project shop"},
		{"system:serviceaccount:kube-system:job-controller", "", ""},
		{"system:node:a", "", ""},
		{"root", user.SystemPrivilegedGroup, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: c.name, Groups: []string{c.group}}))
		if got := payer(requester)(r); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
