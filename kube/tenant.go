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
	// tenantHeader and noWaitHeader are the headers with the tenant's mark in requests that the API
	// server sends to itself.
	tenantHeader = "Slipway-Tenant"
	noWaitHeader = "Slipway-Tenant-No-Wait"
	// masterUser is the user of our controllers.
	masterUser = "system:openshift-master"
	// recordTenant is the tenant of changes of image records by our controllers, because users cause
	// them: the deletion of a project can change thousands of large records.
	recordTenant = "image records"
)

// markTenant adds the tenant of a request to its context. The API server's client of etcd sends the
// tenant with each write of the request, so that etcd need not derive it from the written keys: the
// key of an image, for instance, names no project. requester returns the user who requested a
// project, or "".
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

// ownerOf returns the tenant who requested the project of the tenant with this name. It returns ""
// if the tenant is not a project or no user requested it.
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

// requesters returns a function that returns the user who requested a project. Users can't change
// the annotation.
func requesters(namespaces corelisters.NamespaceLister) func(project string) string {
	return func(project string) string {
		namespace, err := namespaces.Get(project)
		if err != nil {
			return "" // it is new: the cache doesn't have it yet
		}
		return namespace.Annotations[projectv1.ProjectRequesterAnnotation]
	}
}

// markPublic marks requests of the login pages until the pages have authenticated the user.
func markPublic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(tenant.Mark{Name: tenant.Public}.With(r.Context())))
	})
}

// markOf returns the mark of the tenant on whose behalf a request writes: "project shop" if it
// names the project or an object in it, otherwise the project of its service account or "user
// alice". The mark is empty for the platform. A request that the API server sends to itself has the
// mark of the request that caused it, which is in the header.
//
// A component of the platform doesn't wait for a project in whose objects it writes: the scheduler,
// for instance, patches the pods of all projects one after the other.
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

// callerMark returns the mark of a caller's writes outside of projects.
func callerMark(caller string, header http.Header) tenant.Mark {
	if caller == user.APIServerUser {
		name, _ := url.QueryUnescape(header.Get(tenantHeader)) // written by carryTenant
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

// payer returns a function that returns the tenant whose limits apply to the cost of a request: a
// user, with the service accounts of the user's projects. It returns "" for the platform. In
// contrast to writes, requests count for their sender and not for the project that they name.
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

// carryTenant adds the tenant of the context to requests that the API server sends to itself.
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
