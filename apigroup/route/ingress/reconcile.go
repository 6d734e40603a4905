package ingress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/controller"
)

// NotServed is the reason of events about parts of an Ingress that no route can express.
const NotServed = "NotServed"

// NotAdmitted is the reason of events about routes of an Ingress that a router does not serve.
const NotAdmitted = "NotAdmitted"

// retryNotServed is when parts are tried again that were not served, for instance because of a quota.
const retryNotServed = 5 * time.Minute

// reconcile brings the routes of an Ingress to what it says. Those of one that is gone are Kubernetes' to remove.
func (c *Controller) reconcile(ctx context.Context, key controller.Key) error {
	object, there, err := c.ingresses.GetStore().GetByKey(key.String())
	if err != nil || !there {
		return err
	}
	ingress := object.(*networkingv1.Ingress)
	if ingress.DeletionTimestamp != nil {
		return nil
	}
	present, err := c.owned(ingress)
	if err != nil {
		return err
	}
	var wanted []*routev1.Route
	var notes []string
	if c.serves(ingress) {
		var problem error
		wanted, notes = translate(ingress, c.sources(ctx, ingress.Namespace, &problem))
		if problem != nil {
			return problem
		}
	}
	notes, err = c.apply(ctx, ingress, present, wanted, notes)
	if apierrors.IsConflict(err) {
		return controller.After(time.Second)
	}
	if err != nil {
		return err
	}
	if err := c.tell(ctx, ingress, present); err != nil {
		return err
	}
	if refused := refusals(present); len(refused) > 0 {
		c.events.Event(ingress, corev1.EventTypeWarning, NotAdmitted, summary(refused))
	}
	if len(notes) == 0 {
		return nil
	}
	c.events.Event(ingress, corev1.EventTypeWarning, NotServed, summary(notes))
	return controller.After(retryNotServed)
}

// refusals are what routers say about routes that they do not serve.
func refusals(routes map[string]*routev1.Route) (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		for _, router := range routes[name].Status.Ingress {
			for _, condition := range router.Conditions {
				if condition.Type == routev1.RouteAdmitted && condition.Status == corev1.ConditionFalse {
					notes = append(notes, fmt.Sprintf("router %q does not admit host %q: %s: %s", router.RouterName, router.Host, condition.Reason, condition.Message))
				}
			}
		}
	}
	return notes
}

// maxSummary is how much an event says, in bytes: an Ingress may have thousands of paths.
const maxSummary = 1000

// summary is as much of notes as an event holds.
func summary(notes []string) string {
	text := strings.Join(notes, "; ")
	if len(text) > maxSummary {
		text = strings.ToValidUTF8(text[:maxSummary], "") + "..."
	}
	return text
}

// owned are the routes that were made of an Ingress, by name.
func (c *Controller) owned(ingress *networkingv1.Ingress) (map[string]*routev1.Route, error) {
	found, err := c.made.GetIndexer().ByIndex(byOwner, ownedBy(ingress.Namespace, ingress.UID))
	if err != nil {
		return nil, fmt.Errorf("find routes of Ingress: %w", err)
	}
	routes := map[string]*routev1.Route{}
	for _, one := range found {
		route := one.(*routev1.Route)
		routes[route.Name] = route
	}
	return routes, nil
}

// classAnnotation names the class of an Ingress that was written for older versions.
const classAnnotation = "kubernetes.io/ingress.class"

// serves reports whether an Ingress is the router's: it has no class, or one that is.
func (c *Controller) serves(ingress *networkingv1.Ingress) bool {
	name := ingress.Annotations[classAnnotation]
	if ingress.Spec.IngressClassName != nil {
		name = *ingress.Spec.IngressClassName
	}
	if name == "" {
		return true
	}
	class, there, err := c.classes.GetStore().GetByKey(name)
	return err == nil && there && class.(*networkingv1.IngressClass).Spec.Controller == ClassController
}

// sources finds what an Ingress names. What keeps a secret from being read is the problem.
func (c *Controller) sources(ctx context.Context, namespace string, problem *error) sources {
	return sources{
		domain: c.Domain,
		service: func(name string) *corev1.Service {
			object, there, err := c.services.GetStore().GetByKey(namespace + "/" + name)
			if err != nil || !there {
				return nil
			}
			return object.(*corev1.Service)
		},
		secret: func(name string) *corev1.Secret {
			secret, err := c.kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				return secret
			}
			if !apierrors.IsNotFound(err) {
				*problem = fmt.Errorf("read secret: %w", err)
			}
			return nil
		},
	}
}

// apply makes, changes and removes routes. What the server does not take is added to the notes; the others are made.
func (c *Controller) apply(ctx context.Context, ingress *networkingv1.Ingress, present map[string]*routev1.Route, wanted []*routev1.Route, notes []string) ([]string, error) {
	routes := c.routes.RouteV1().Routes(ingress.Namespace)
	left := maps.Clone(present)
	var errs []error
	for _, want := range wanted {
		before, there := left[want.Name]
		delete(left, want.Name)
		var err error
		switch {
		case !there:
			_, err = routes.Create(ctx, want, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) { // the cache does not know it yet, or it is somebody else's
				err = c.somebodyElses(ctx, ingress, want)
			}
		case differ(before, want):
			changed := before.DeepCopy()
			changed.Labels, changed.Annotations = want.Labels, want.Annotations
			weight, policy := changed.Spec.To.Weight, changed.Spec.WildcardPolicy
			changed.Spec = want.Spec
			changed.Spec.To.Weight, changed.Spec.WildcardPolicy = weight, policy
			_, err = routes.Update(ctx, changed, metav1.UpdateOptions{})
		}
		switch {
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			notes = append(notes, err.Error())
		case !apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			errs = append(errs, err)
		}
	}
	for name, route := range left {
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(route.UID))}
		if err := routes.Delete(ctx, name, options); !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	for _, problem := range errs {
		if apierrors.IsConflict(problem) {
			return notes, problem
		}
	}
	return notes, errors.Join(errs...)
}

// somebodyElses refuses to take over a route that was not made of this Ingress.
func (c *Controller) somebodyElses(ctx context.Context, ingress *networkingv1.Ingress, want *routev1.Route) error {
	found, err := c.routes.RouteV1().Routes(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil || metav1.IsControlledBy(found, ingress) {
		return err
	}
	return apierrors.NewForbidden(routev1.Resource("routes"), want.Name, errors.New("a route of the name is there already and does not belong to the Ingress"))
}

// differ compares what is taken from an Ingress.
func differ(present, want *routev1.Route) bool {
	a, b := present.Spec.DeepCopy(), want.Spec.DeepCopy()
	a.To.Weight, a.WildcardPolicy = nil, ""
	b.To.Weight, b.WildcardPolicy = nil, ""
	return !equality.Semantic.DeepEqual(a, b) || !equality.Semantic.DeepEqual(present.Labels, want.Labels) ||
		!equality.Semantic.DeepEqual(present.Annotations, want.Annotations)
}

// tell writes into the status of an Ingress where routers have admitted its routes.
func (c *Controller) tell(ctx context.Context, ingress *networkingv1.Ingress, routes map[string]*routev1.Route) error {
	var served []networkingv1.IngressLoadBalancerIngress
	if !c.serves(ingress) {
		if len(routes) == 0 {
			return nil // somebody else tells
		}
		routes = nil
	}
	for _, route := range routes {
		for _, router := range route.Status.Ingress {
			admitted := slices.ContainsFunc(router.Conditions, func(condition routev1.RouteIngressCondition) bool {
				return condition.Type == routev1.RouteAdmitted && condition.Status == corev1.ConditionTrue
			})
			if admitted {
				served = append(served, at(cmp.Or(router.RouterCanonicalHostname, c.Address)))
			}
		}
	}
	compare := func(a, b networkingv1.IngressLoadBalancerIngress) int {
		return cmp.Or(cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.IP, b.IP))
	}
	slices.SortFunc(served, compare)
	served = slices.CompactFunc(served, func(a, b networkingv1.IngressLoadBalancerIngress) bool { return compare(a, b) == 0 })
	if equality.Semantic.DeepEqual(ingress.Status.LoadBalancer.Ingress, served) {
		return nil
	}
	changed := ingress.DeepCopy()
	changed.Status.LoadBalancer.Ingress = served
	_, err := c.kube.NetworkingV1().Ingresses(ingress.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // its change brings it again
	}
	return err
}

func at(place string) networkingv1.IngressLoadBalancerIngress {
	if net.ParseIP(place) != nil {
		return networkingv1.IngressLoadBalancerIngress{IP: place}
	}
	return networkingv1.IngressLoadBalancerIngress{Hostname: place}
}
