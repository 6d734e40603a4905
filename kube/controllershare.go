package kube

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/utils/clock"

	"github.com/slipway-platform/slipway/internal/ratelimit"
)

const (
	// controllerRate and controllerBurst limit the requests per second that one of upstream's
	// controllers sends for the projects of one user.
	controllerRate  = 200
	controllerBurst = 1000
	// controllersRate and controllersBurst limit the requests per second of each controller. A user's
	// share must be a small part of these limits.
	controllersRate  = 4000
	controllersBurst = 8000
	// controllerAccounts is the prefix of the user names that upstream's controllers have.
	controllerAccounts = "system:serviceaccount:kube-system:"
	// namespaceController is the account of the controller that deletes the content of projects.
	namespaceController = "namespace-controller"
	// nodeController is the account of the controllers that evict pods from tainted nodes. Their
	// requests are not limited, because upstream does not retry a failed eviction.
	nodeController = "node-controller"
)

// controllerShares limits the requests of each upstream controller for each user's projects.
//
// Upstream's controllers process the objects of all projects in one queue, and their clients delay
// requests above a rate. Therefore, one project with many changes would delay a controller's work
// in all other projects. Requests above a user's share fail instead, so that the controller
// continues with the next object and retries later.
type controllerShares struct {
	requester func(project string) string
	clock     clock.PassiveClock
	shares    ratelimit.Limiters[controllerShare]
}

type controllerShare struct{ controller, tenant string }

func newControllerShares(requester func(project string) string) *controllerShares {
	return &controllerShares{requester: requester, clock: clock.RealClock{}, shares: ratelimit.Limiters[controllerShare]{Rate: controllerRate, Burst: controllerBurst}}
}

// limit rejects requests that exceed a user's share.
func (s *controllerShares) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		caller, authenticated := request.UserFrom(r.Context())
		if ok && authenticated && info.Namespace != "" {
			if name, ok := strings.CutPrefix(caller.GetName(), controllerAccounts); ok && !s.take(name, info.Namespace) {
				// Omit the number of seconds, so that the client does not retry. Its retries would
				// occupy the controller.
				busy := apierrors.NewTooManyRequests("the controller changes too many objects for the owner of project "+info.Namespace, 0)
				version := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
				responsewriters.ErrorNegotiated(busy, legacyscheme.Codecs, version, w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// take reports whether a controller's request in a project is within the share of the project's
// user. The deletion of projects is not limited here, because it consists of hundreds of requests
// for each project. Another limit applies to the number of a user's projects that are being
// deleted.
func (s *controllerShares) take(controller, project string) bool {
	name := projectTenant(project)
	if name == "" || controller == namespaceController || controller == nodeController {
		return true
	}
	if owner := ownerOf(name, s.requester); owner != "" {
		name = owner
	}
	now := s.clock.Now()
	return s.shares.At(controllerShare{controller, name}, now).AllowN(now, 1)
}
