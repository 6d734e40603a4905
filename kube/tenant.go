package kube

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	projectv1 "github.com/openshift/api/project/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/internal/tenant"
)

const (
	// tenantHeader and noWaitHeader are headers in requests that the API server sends to itself.
	// They contain the tenant's mark.
	tenantHeader = "Slipway-Tenant"
	noWaitHeader = "Slipway-Tenant-No-Wait"
	// masterUser is the user that Slipway's controllers run as.
	masterUser = "system:openshift-master"
	// recordTenant is the tenant for changes that Slipway's controllers make to image records.
	// These changes count toward a tenant because users cause them: when a project is deleted,
	// thousands of large records can change.
	recordTenant = "image records"
)

// markTenant adds a request's tenant to its context. The API server's etcd client sends the tenant
// with each of the request's writes, because etcd cannot always derive the tenant from the keys.
// For example, an image's key does not contain a project. requester returns the user who requested
// a project, or "".
func markTenant(requester func(project string) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		caller, authenticated := request.UserFrom(r.Context())
		if ok && authenticated {
			if mark := markOf(info, caller, r.Header); mark.Name != "" {
				mark.Deletes = info.Verb == "delete" || info.Verb == "deletecollection"
				mark.Owner = ownerOf(mark.Name, requester)
				r = r.WithContext(mark.With(r.Context()))
			}
		}
		next.ServeHTTP(w, r)
	})
}

// ownerOf returns the tenant of the user who requested a tenant's project. It returns "" if the
// tenant is not a project or if no user requested the project.
func ownerOf(name string, requester func(project string) string) string {
	project, ok := tenant.ProjectOf(name)
	if !ok {
		return ""
	}
	if user := requester(project); user != "" {
		return tenant.User(user)
	}
	return ""
}

// requesters returns a function that returns the user who requested a project. Users cannot change
// the annotation that records this user.
func requesters(namespaces corelisters.NamespaceLister) func(project string) string {
	return func(project string) string {
		namespace, err := namespaces.Get(project)
		if err != nil {
			return "" // the cache does not contain the new object yet
		}
		return namespace.Annotations[projectv1.ProjectRequesterAnnotation]
	}
}

// markPublic marks requests to the login pages until the pages have authenticated the user.
func markPublic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(tenant.Mark{Name: tenant.Public}.With(r.Context())))
	})
}

// markOf returns the mark of the tenant that a request writes for. If the request specifies a
// project or an object in a project, the mark is that project ("project shop"). Otherwise, it is
// the project of the requesting service account, or the user ("user alice"). The mark is empty for
// the platform. If the API server sends a request to itself, the request's header contains the mark
// of the original request.
//
// Platform components do not wait for the project whose objects they write. For example, the
// scheduler patches the pods of all projects one after another, so one project must not delay it.
func markOf(info *request.RequestInfo, caller user.Info, header http.Header) tenant.Mark {
	writer := callerMark(caller.GetName(), header)
	namespace := info.Namespace
	if info.Resource == "projects" && namespace == "" {
		namespace = info.Name
	}
	switch {
	case namespace != "":
		project := projectTenant(namespace)
		return tenant.Mark{Name: project, NoWait: project != "" && (writer.Name == "" || writer.NoWait)}
	case caller.GetName() == masterUser && info.APIGroup == imagev1.GroupName:
		return tenant.Mark{Name: recordTenant, NoWait: true}
	}
	return writer
}

// callerMark returns the mark for a caller's writes outside projects.
func callerMark(caller string, header http.Header) tenant.Mark {
	if caller == user.APIServerUser {
		name, _ := url.QueryUnescape(header.Get(tenantHeader)) // carryTenant escapes the name
		return tenant.Mark{Name: name, NoWait: header.Get(noWaitHeader) != ""}
	}
	if namespace, _, err := serviceaccount.SplitUsername(caller); err == nil {
		return tenant.Mark{Name: projectTenant(namespace)}
	}
	if strings.HasPrefix(caller, "system:") && caller != user.Anonymous {
		return tenant.Mark{}
	}
	return tenant.Mark{Name: tenant.User(caller)}
}

// payer returns a function that returns the tenant whose limits a request counts toward. The tenant
// is a user together with the service accounts in the user's projects. The function returns "" for
// the platform. Unlike writes, requests count toward the limits of their sender, not toward the
// limits of the project that they specify.
func payer(requester func(project string) string) func(*http.Request) string {
	return func(r *http.Request) string {
		caller, ok := request.UserFrom(r.Context())
		if !ok || slices.Contains(caller.GetGroups(), user.SystemPrivilegedGroup) {
			return ""
		}
		mark := callerMark(caller.GetName(), nil)
		mark.Owner = ownerOf(mark.Name, requester)
		return mark.Share()
	}
}

func projectTenant(namespace string) string {
	switch {
	case namespace == "default", namespace == "openshift", strings.HasPrefix(namespace, "openshift-"), strings.HasPrefix(namespace, "kube-"):
		return ""
	}
	return tenant.Project(namespace)
}

// carryTenant adds the context's tenant to requests that the API server sends to itself.
func carryTenant(next http.RoundTripper) http.RoundTripper { return tenantCarrier{next} }

type tenantCarrier struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c tenantCarrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if mark := tenant.Outgoing(r.Context()); mark.Name != "" {
		r = utilnet.CloneRequest(r)
		r.Header.Set(tenantHeader, url.QueryEscape(mark.Name))
		if mark.NoWait {
			r.Header.Set(noWaitHeader, "true")
		}
	}
	return c.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (c tenantCarrier) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }
