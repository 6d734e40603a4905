package masters

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/etcdmember"
)

// Path is the URL path of a View. Users need a role that grants access to this path.
const Path = "/slipway/cluster"

// viewTimeout is the timeout for collecting a View. A member that does not respond delays the View
// by a few seconds.
const viewTimeout = 30 * time.Second

// View describes the state of the masters.
type View struct {
	Members []MemberView `json:"etcd"`
	Leaders []LeaderView `json:"leaders"`
}

// MemberView describes an etcd member. Behind is the number of log entries that the member has not
// applied yet. Size is the size of the member's database, in bytes. If a member has a problem, the
// other values are not set.
type MemberView struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Leader  bool   `json:"leader"`
	Behind  uint64 `json:"behind"`
	Size    int64  `json:"size"`
	Version string `json:"version"`
	Problem string `json:"problem,omitempty"`
}

// LeaderView identifies the master that runs a group of components.
type LeaderView struct {
	Group  string `json:"group"`
	Master string `json:"master"`
}

// Feature serves a View at Path. groups lists the groups of components that only one master runs at
// a time.
func Feature(members etcdmember.Client, groups []string) apiserver.Feature {
	return apiserver.Feature{Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
		view := apiserver.View(Path, viewTimeout, http.StatusServiceUnavailable, func(ctx context.Context, _ *http.Request) (any, error) {
			return Read(ctx, members, deps.Kube, groups)
		})
		return apiserver.Hooks{Handlers: []apiserver.Handler{view}}, nil
	}}
}

// Read collects a View.
func Read(ctx context.Context, members etcdmember.Client, client kubernetes.Interface, groups []string) (View, error) {
	states, err := members.States(ctx)
	if err != nil {
		return View{}, err
	}
	view := View{Members: MemberViews(states)}
	leases, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return View{}, fmt.Errorf("list leaders: %w", err)
	}
	for _, lease := range leases.Items {
		if holder := lease.Spec.HolderIdentity; slices.Contains(groups, lease.Name) && holder != nil {
			view.Leaders = append(view.Leaders, LeaderView{lease.Name, *holder})
		}
	}
	return view, nil
}

// MemberViews converts member states to views.
func MemberViews(states []etcdmember.State) (views []MemberView) {
	last := etcdmember.LastIndex(states)
	for _, s := range states {
		view := MemberView{Name: s.Name, Role: s.Role(), Problem: s.Problem()}
		if view.Problem == "" {
			view.Leader, view.Behind, view.Size, view.Version = s.Leader == s.ID, last-s.Index, s.Size, s.Version
		}
		views = append(views, view)
	}
	return views
}
