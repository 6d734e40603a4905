package project

import (
	"strings"
	"testing"

	projectv1 "github.com/openshift/api/project/v1"
	userv1 "github.com/openshift/api/user/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/apiserver/storetest"
)

// namespaceLister returns a namespace lister that contains namespaces.
func namespaceLister(t *testing.T, namespaces ...*corev1.Namespace) corelisters.NamespaceLister {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, namespace := range namespaces {
		if err := indexer.Add(namespace); err != nil {
			t.Fatal(err)
		}
	}
	return corelisters.NewNamespaceLister(indexer)
}

func TestLimitOfRequestedProjects(t *testing.T) {
	requested := func(name, user string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{requesterAnnotation: user}}}
	}
	deleted := requested("deleted", "alice")
	deleted.DeletionTimestamp = &metav1.Time{}
	const robot = "system:serviceaccount:shop:robot"
	users := userv1.Resource("users")
	f := &feature{
		deps: apiserver.Deps{Stores: map[schema.GroupResource]*registry.Store{users: storetest.New(users, &userv1.UserList{},
			&userv1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}},
			&userv1.User{ObjectMeta: metav1.ObjectMeta{Name: "admin", Labels: map[string]string{"level": "admin"}}},
			&userv1.User{ObjectMeta: metav1.ObjectMeta{Name: "guest", Labels: map[string]string{"level": "guest"}}},
		)}},
		observer: &observer{namespaces: namespaceLister(t, requested("one", "alice"), requested("two", "alice"), deleted,
			requested("three", "admin"), requested("four", robot), requested("five", "system:admin"))},
	}
	const levels = "limits: [{selector: {level: admin}}, {selector: {level: guest}, maxProjects: 0}, {maxProjects: 2}]\n"
	for _, tt := range []struct {
		name, config, user string
		allowed            bool
	}{
		{"no limit", "", "alice", true},
		{"limit that is reached", levels, "alice", false},
		{"deleted projects do not count", "limits: [{maxProjects: 3}]", "alice", true},
		{"selector without a limit", levels, "admin", true},
		{"selector with the limit zero", levels, "guest", false},
		{"user without a User object", levels, "new", true},
		{"first limit applies", "limits: [{maxProjects: 3}, {maxProjects: 1}]", "alice", true},
		{"limits do not apply to service accounts", levels + "maxProjectsForSystemUsers: 0", robot, true},
		{"limit of service accounts", "maxProjectsForServiceAccounts: 1", robot, false},
		{"limits do not apply to system users", levels, "system:admin", true},
		{"limit of system users", "maxProjectsForSystemUsers: 1", "system:admin", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := newLimit(f, strings.NewReader(tt.config))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Validate(t.Context(), attributesOf("projectrequests", "", "", nil, tt.user), nil); (err == nil) != tt.allowed {
				t.Errorf("got error %v, want allowed %v", err, tt.allowed)
			}
		})
	}
}

func TestLimitIgnoresOtherRequests(t *testing.T) {
	l, err := newLimit(&feature{}, strings.NewReader("limits: [{maxProjects: 0}]"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Validate(t.Context(), attributesOf("projects", "", "", nil, "alice"), nil); err != nil {
		t.Error(err)
	}
}

func TestInvalidLimitsAreRejected(t *testing.T) {
	for config, want := range map[string]string{
		"limits: [{maxProjects: 1}, {maxProjects: -1}]": "limits[1].maxProjects is -1, must not be negative",
		"limit: []":       "unknown field",
		"kind: PodConfig": `kind is "PodConfig", must be ProjectRequestLimitConfig`,
	} {
		if _, err := newLimit(&feature{}, strings.NewReader(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", config, err, want)
		}
	}
}

// attributesOf returns the admission attributes of a create request. pod is nil for requests
// without a pod.
func attributesOf(resource, subresource, namespace string, pod *corev1.Pod, name string) admission.Attributes {
	gvr := projectv1.GroupVersion.WithResource(resource)
	if resource == "pods" {
		gvr = corev1.SchemeGroupVersion.WithResource(resource)
	}
	if pod == nil {
		return admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, namespace, "", gvr, subresource, admission.Create, nil, false, &user.DefaultInfo{Name: name})
	}
	requester := &user.DefaultInfo{Name: name}
	if strings.HasPrefix(name, "system:node:") {
		requester.Groups = []string{user.NodesGroup}
	}
	return admission.NewAttributesRecord(pod, nil, schema.GroupVersionKind{}, namespace, "", gvr, subresource, admission.Create, nil, false, requester)
}
