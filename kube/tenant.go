package kube

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc/metadata"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// tenantKey is the key of the tenant in the metadata of requests to etcd.
	tenantKey = "slipway-tenant-bin"
	// tenantHeader is the header of the tenant in requests that the API server sends to itself.
	tenantHeader = "Slipway-Tenant"
)

// markTenant adds the tenant of a request to its context. The API server's client of etcd sends the
// tenant with each write of the request, so that etcd need not derive it from the written keys: the
// key of an image, for instance, names no project.
func markTenant(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		caller, authenticated := request.UserFrom(r.Context())
		if ok && authenticated {
			if tenant := tenantOf(info, caller, r.Header.Get(tenantHeader)); tenant != "" {
				r = r.WithContext(metadata.AppendToOutgoingContext(r.Context(), tenantKey, tenant))
			}
		}
		next.ServeHTTP(w, r)
	})
}

// tenantOf returns on whose behalf a request writes: "project shop" if it names the project or an
// object in it, otherwise the project of its service account or "user alice". It is empty for the
// platform. A request that the API server sends to itself has the tenant of the request that caused
// it, which is in the header.
func tenantOf(info *request.RequestInfo, caller user.Info, header string) string {
	namespace := info.Namespace
	if info.Resource == "projects" && namespace == "" {
		namespace = info.Name
	}
	if namespace != "" {
		return projectTenant(namespace)
	}
	name := caller.GetName()
	if name == user.APIServerUser {
		tenant, _ := url.QueryUnescape(header) // written by carryTenant
		return tenant
	}
	if namespace, _, err := serviceaccount.SplitUsername(name); err == nil {
		return projectTenant(namespace)
	}
	if strings.HasPrefix(name, "system:") {
		return ""
	}
	return "user " + name
}

func projectTenant(namespace string) string {
	switch {
	case namespace == "default", namespace == "openshift", strings.HasPrefix(namespace, "openshift-"), strings.HasPrefix(namespace, "kube-"):
		return ""
	}
	return "project " + namespace
}

// carryTenant adds the tenant of the context to requests that the API server sends to itself.
func carryTenant(next http.RoundTripper) http.RoundTripper { return tenantCarrier{next} }

type tenantCarrier struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c tenantCarrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if md, _ := metadata.FromOutgoingContext(r.Context()); len(md[tenantKey]) > 0 {
		r = utilnet.CloneRequest(r)
		r.Header.Set(tenantHeader, url.QueryEscape(md[tenantKey][0]))
	}
	return c.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (c tenantCarrier) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }

// writingTenant returns the tenant of a request that etcd received, or "" for the platform.
func writingTenant(ctx context.Context) string {
	if values := metadata.ValueFromIncomingContext(ctx, tenantKey); len(values) > 0 {
		return values[0]
	}
	return ""
}
