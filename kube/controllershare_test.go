package kube

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"
)

// ask sends a user's request for an object in a project, and returns the response.
func (s *controllerShares) ask(t *testing.T, caller, project string) *httptest.ResponseRecorder {
	t.Helper()
	ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{IsResourceRequest: true, Verb: "get", APIVersion: "v1", Resource: "configmaps", Namespace: project, Name: "x"})
	ctx = request.WithUser(ctx, &user.DefaultInfo{Name: caller})
	w := httptest.NewRecorder()
	s.limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/namespaces/x/configmaps/x", nil))
	return w
}

func TestControllerRejectsWorkAboveUsersShare(t *testing.T) {
	const collector, jobs = controllerAccounts + "generic-garbage-collector", controllerAccounts + "job-controller"
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	s := newControllerShares(requester)
	s.clock = now
	for range controllerBurst {
		if w := s.ask(t, collector, "requested-a"); w.Code != http.StatusOK {
			t.Fatalf("status %d within the share", w.Code)
		}
	}
	if w := s.ask(t, collector, "requested-b"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "" {
		t.Errorf("status %d, Retry-After %q for a request above the share of the user of both projects", w.Code, w.Header().Get("Retry-After"))
	}
	for name, other := range map[string][2]string{
		"another user's project":      {collector, "shop"},
		"another controller":          {jobs, "requested-a"},
		"a project's account":         {"system:serviceaccount:requested-a:default", "requested-a"},
		"the user":                    {"alice", "requested-a"},
		"a namespace of the platform": {collector, "openshift-infra"},
		"the deletion of a project":   {controllerAccounts + namespaceController, "requested-a"},
		"evictions from nodes":        {controllerAccounts + nodeController, "requested-a"},
		"no namespace":                {collector, ""},
	} {
		if w := s.ask(t, other[0], other[1]); w.Code != http.StatusOK {
			t.Errorf("status %d for %s", w.Code, name)
		}
	}
	now.SetTime(now.Now().Add(time.Second))
	if w := s.ask(t, collector, "requested-a"); w.Code != http.StatusOK {
		t.Errorf("status %d a second later", w.Code)
	}
	now.SetTime(now.Now().Add(time.Minute))
	if s.ask(t, collector, "new"); s.shares.Len() != 1 {
		t.Errorf("%d shares are in memory, want 1", s.shares.Len())
	}
}
