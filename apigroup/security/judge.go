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

// judge knows the constraints, who may use them, and the namespaces; admission and the reviews ask it.
type judge struct {
	stores     map[schema.GroupResource]*registry.Store
	namespaces corelisters.NamespaceLister
	authorizer authorizer.Authorizer
}

// use takes what the API server lends. The stores are filled later.
func (j *judge) use(deps apiserver.Deps) {
	j.stores = deps.Stores
	j.namespaces = deps.Informers.Core().V1().Namespaces().Lister()
	j.authorizer = deps.Authorizer
}

// all are the constraints in the order in which they are tried. They come from the API server's cache; callers must not change
// them.
func (j *judge) all(ctx context.Context) ([]*scc.Constraints, error) {
	store := j.stores[constraintsResource()]
	found, err := store.List(ctx, &internalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list security context constraints: %w", err)
	}
	items := found.(*securityv1.SecurityContextConstraintsList).Items
	ordered := make([]*scc.Constraints, 0, len(items))
	for i := range items {
		ordered = append(ordered, &items[i])
	}
	scc.Sort(ordered)
	return ordered, nil
}

// usable leaves those constraints that one of the subjects may use in the namespace: because the constraint lists the user or
// a group, or because a role lets the subject `use` it.
func (j *judge) usable(ctx context.Context, constraints []*scc.Constraints, namespace string, subjects []user.Info) []*scc.Constraints {
	return slices.DeleteFunc(slices.Clone(constraints), func(c *scc.Constraints) bool {
		return !slices.ContainsFunc(subjects, func(subject user.Info) bool { return j.mayUse(ctx, c, namespace, subject) })
	})
}

func (j *judge) mayUse(ctx context.Context, c *scc.Constraints, namespace string, subject user.Info) bool {
	if slices.Contains(c.Users, subject.GetName()) {
		return true
	}
	for _, group := range subject.GetGroups() {
		if slices.Contains(c.Groups, group) {
			return true
		}
	}
	decision, _, err := j.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: subject, Verb: "use", Namespace: namespace, Name: c.Name,
		APIGroup: securityv1.GroupName, APIVersion: securityv1.GroupVersion.Version, Resource: constraintsResource().Resource,
		ResourceRequest: true,
	})
	return err == nil && decision == authorizer.DecisionAllow
}

// decide tries the constraints that the subjects may use on a pod that is being made.
func (j *judge) decide(ctx context.Context, namespace string, pod *corev1.Pod, at *field.Path, subjects []user.Info) (scc.Decision, error) {
	constraints, ns, err := j.court(ctx, namespace, subjects)
	if err != nil {
		return scc.Decision{}, err
	}
	return scc.Decide(constraints, ns, pod, at), nil
}

// court finds the constraints that count and the namespace.
func (j *judge) court(ctx context.Context, namespace string, subjects []user.Info) ([]*scc.Constraints, *corev1.Namespace, error) {
	all, err := j.all(ctx)
	if err != nil {
		return nil, nil, err
	}
	ns, err := j.allocated(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	return j.usable(ctx, all, namespace, subjects), ns, nil
}

// allocationWait is how long a namespace that was just made may take to get its ranges.
const allocationWait = 5 * time.Second

// allocated finds a namespace and waits until its ranges are allocated. After allocationWait it is returned as it is, and the
// constraints that need them object.
func (j *judge) allocated(ctx context.Context, name string) (ns *corev1.Namespace, err error) {
	_ = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, allocationWait, true, func(context.Context) (bool, error) {
		ns, err = j.namespaces.Get(name)
		return err == nil && ns.Annotations[securityv1.UIDRangeAnnotation] != "" && ns.Annotations[securityv1.MCSAnnotation] != "", nil
	})
	if err != nil {
		return nil, fmt.Errorf("find namespace %q: %w", name, err)
	}
	return ns, nil
}

// account is the user that a pod's service account is, by the name `default` when the pod names none.
func account(namespace string, pod *corev1.Pod) user.Info {
	name := pod.Spec.ServiceAccountName
	if name == "" {
		name = "default"
	}
	who := serviceaccount.UserInfo(namespace, name, "")
	return &user.DefaultInfo{Name: who.GetName(), Groups: append(who.GetGroups(), user.AllAuthenticated)} // as its requests have it
}
