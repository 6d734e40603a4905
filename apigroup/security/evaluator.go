package security

import (
	"context"
	"fmt"
	"slices"
	"time"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/apigroup/security/scc"
	"github.com/slipway-platform/slipway/apiserver"
)

// evaluator finds the constraints that apply to a pod. The admission plugins and the reviews share
// it.
type evaluator struct {
	stores     map[schema.GroupResource]*registry.Store
	namespaces corelisters.NamespaceLister
	authorizer authorizer.Authorizer
}

// use stores the API server's dependencies. The API server adds stores to the deps.Stores map
// later.
func (e *evaluator) use(deps apiserver.Deps) {
	e.stores = deps.Stores
	e.namespaces = deps.Informers.Core().V1().Namespaces().Lister()
	e.authorizer = deps.Authorizer
}

// all returns the constraints in evaluation order. They come from the API server's cache, so
// callers must not modify them.
func (e *evaluator) all(ctx context.Context) ([]*scc.Constraints, error) {
	store := e.stores[constraintsResource()]
	list, err := store.List(ctx, &internalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list security context constraints: %w", err)
	}
	items := list.(*securityv1.SecurityContextConstraintsList).Items
	constraints := make([]*scc.Constraints, 0, len(items))
	for i := range items {
		constraints = append(constraints, &items[i])
	}
	scc.Sort(constraints)
	return constraints, nil
}

// usable returns the constraints that at least one of the subjects is allowed to use in the
// namespace. A subject is allowed to use a constraint if the constraint lists the user or one of
// the user's groups. A role can also grant the subject the `use` verb.
func (e *evaluator) usable(ctx context.Context, constraints []*scc.Constraints, namespace string, subjects []user.Info) []*scc.Constraints {
	return slices.DeleteFunc(slices.Clone(constraints), func(c *scc.Constraints) bool {
		return !slices.ContainsFunc(subjects, func(subject user.Info) bool { return e.mayUse(ctx, c, namespace, subject) })
	})
}

// mayUse reports whether a subject is allowed to use a constraint. The authorizer decides first: it
// denies access that a token's scopes do not allow, even if the constraint lists the token's user.
// OpenShift 3.11 ignores scopes for listed users.
func (e *evaluator) mayUse(ctx context.Context, c *scc.Constraints, namespace string, subject user.Info) bool {
	decision, _, err := e.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: subject, Verb: "use", Namespace: namespace, Name: c.Name,
		APIGroup: securityv1.GroupName, APIVersion: securityv1.GroupVersion.Version, Resource: constraintsResource().Resource,
		ResourceRequest: true,
	})
	switch decision {
	case authorizer.DecisionDeny:
		return false
	case authorizer.DecisionAllow:
		if err == nil {
			return true
		}
	}
	if slices.Contains(c.Users, subject.GetName()) {
		return true
	}
	return slices.ContainsFunc(subject.GetGroups(), func(group string) bool { return slices.Contains(c.Groups, group) })
}

// decide evaluates a new pod against the constraints that the subjects are allowed to use.
func (e *evaluator) decide(ctx context.Context, namespace string, pod *corev1.Pod, path *field.Path,
	subjects []user.Info) (scc.Decision, error) {
	constraints, ns, err := e.candidates(ctx, namespace, subjects)
	if err != nil {
		return scc.Decision{}, err
	}
	return scc.Decide(constraints, ns, pod, path), nil
}

// candidates returns the constraints that the subjects are allowed to use in a namespace, and the
// namespace.
func (e *evaluator) candidates(ctx context.Context, namespace string,
	subjects []user.Info) ([]*scc.Constraints, *corev1.Namespace, error) {
	all, err := e.all(ctx)
	if err != nil {
		return nil, nil, err
	}
	ns, err := e.namespaceWithRanges(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	return e.usable(ctx, all, namespace, subjects), ns, nil
}

// allocationTimeout is how long a request waits for the allocation of a new namespace's ranges.
const allocationTimeout = 5 * time.Second

// namespaceWithRanges waits until a namespace's ranges are allocated, and returns the namespace.
// After allocationTimeout, it returns the namespace without ranges, and the constraints that
// require ranges reject the pod.
func (e *evaluator) namespaceWithRanges(ctx context.Context, name string) (ns *corev1.Namespace, err error) {
	_ = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, allocationTimeout, true, func(context.Context) (bool, error) {
		ns, err = e.namespaces.Get(name)
		return err == nil && ns.Annotations[securityv1.UIDRangeAnnotation] != "" && ns.Annotations[securityv1.MCSAnnotation] != "", nil
	})
	if err != nil {
		return nil, fmt.Errorf("find namespace %q: %w", name, err)
	}
	return ns, nil
}

// account returns the user of a pod's service account. The default service account is `default`.
func account(namespace string, pod *corev1.Pod) user.Info {
	name := pod.Spec.ServiceAccountName
	if name == "" {
		name = "default"
	}
	info := serviceaccount.UserInfo(namespace, name, "")
	// In requests, service accounts are also members of the system:authenticated group.
	return &user.DefaultInfo{Name: info.GetName(), Groups: append(info.GetGroups(), user.AllAuthenticated)}
}
