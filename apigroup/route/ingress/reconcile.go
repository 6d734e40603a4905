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

// NotServed is the reason in events about a part of an Ingress for which no route can be created.
const NotServed = "NotServed"

// NotAdmitted is the reason in events about an Ingress whose routes a router rejects.
const NotAdmitted = "NotAdmitted"

// notServedInterval is the interval between attempts to create the routes that could not be created
// before, for example because of a quota.
const notServedInterval = 5 * time.Minute

// reconcile updates an Ingress's routes. Kubernetes deletes the routes of a deleted Ingress.
func (c *Controller) reconcile(ctx context.Context, key controller.Key) error {
	object, exists, err := c.ingresses.GetStore().GetByKey(key.String())
	if err != nil || !exists {
		return err
	}
	ingress := object.(*networkingv1.Ingress)
	if ingress.DeletionTimestamp != nil {
		return nil
	}
	existing, err := c.owned(ingress)
	if err != nil {
		return err
	}
	var desired []*routev1.Route
	var notes []string
	if c.serves(ingress) {
		var sourceErr error
		desired, notes = translate(ingress, c.sources(ctx, ingress.Namespace, &sourceErr))
		if sourceErr != nil {
			return sourceErr
		}
	}
	notes, err = c.apply(ctx, ingress, existing, desired, notes)
	if apierrors.IsConflict(err) {
		return controller.RequeueAfter(time.Second)
	}
	if err != nil {
		return err
	}
	if err := c.updateStatus(ctx, ingress, existing); err != nil {
		return err
	}
	if rejections := rejected(existing); len(rejections) > 0 {
		c.events.Event(ingress, corev1.EventTypeWarning, NotAdmitted, summary(rejections))
	}
	if len(notes) == 0 {
		return nil
	}
	c.events.Event(ingress, corev1.EventTypeWarning, NotServed, summary(notes))
	return controller.RequeueAfter(notServedInterval)
}

// rejected returns the reasons why routers reject routes.
func rejected(routes map[string]*routev1.Route) (notes []string) {
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

// maxSummary is the maximum length of an event message, in bytes. Messages are truncated because an
// Ingress can have thousands of paths.
const maxSummary = 1000

// summary joins notes, and truncates the result to maxSummary.
func summary(notes []string) string {
	text := strings.Join(notes, "; ")
	if len(text) > maxSummary {
		text = strings.ToValidUTF8(text[:maxSummary], "") + "..."
	}
	return text
}

// owned returns an Ingress's routes, keyed by name.
func (c *Controller) owned(ingress *networkingv1.Ingress) (map[string]*routev1.Route, error) {
	items, err := c.children.GetIndexer().ByIndex(byOwner, ownedBy(ingress.Namespace, ingress.UID))
	if err != nil {
		return nil, fmt.Errorf("find Ingress routes: %w", err)
	}
	routes := map[string]*routev1.Route{}
	for _, item := range items {
		route := item.(*routev1.Route)
		routes[route.Name] = route
	}
	return routes, nil
}

// classAnnotation is the annotation that contains an Ingress's class in older Kubernetes versions.
const classAnnotation = "kubernetes.io/ingress.class"

// serves reports whether the router serves an Ingress: the Ingress either has no class or has one
// of the router's classes.
func (c *Controller) serves(ingress *networkingv1.Ingress) bool {
	name := ingress.Annotations[classAnnotation]
	if ingress.Spec.IngressClassName != nil {
		name = *ingress.Spec.IngressClassName
	}
	if name == "" {
		return true
	}
	class, exists, err := c.classes.GetStore().GetByKey(name)
	return err == nil && exists && class.(*networkingv1.IngressClass).Spec.Controller == ClassController
}

// sources returns the functions that look up the objects that an Ingress refers to. If a secret
// cannot be read, the functions store the error in *readErr.
func (c *Controller) sources(ctx context.Context, namespace string, readErr *error) sources {
	return sources{
		domain: c.Domain,
		service: func(name string) *corev1.Service {
			object, exists, err := c.services.GetStore().GetByKey(namespace + "/" + name)
			if err != nil || !exists {
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
				*readErr = fmt.Errorf("read secret: %w", err)
			}
			return nil
		},
	}
}

// apply creates, updates and deletes routes. If the server rejects a route, apply adds the reason
// to the notes, and continues with the other routes.
func (c *Controller) apply(ctx context.Context, ingress *networkingv1.Ingress, existing map[string]*routev1.Route,
	desired []*routev1.Route, notes []string) ([]string, error) {
	routes := c.routes.RouteV1().Routes(ingress.Namespace)
	obsolete := maps.Clone(existing)
	var errs []error
	for _, want := range desired {
		current, exists := obsolete[want.Name]
		delete(obsolete, want.Name)
		var err error
		switch {
		case !exists:
			_, err = routes.Create(ctx, want, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) { // the route is uncached or has another owner
				err = c.checkOwner(ctx, ingress, want)
			}
		case current.Spec.Host != want.Spec.Host:
			// Do not change the host of an existing route. The oldest route for a host claims the
			// host, and any user can create a route with an owner reference to the Ingress.
			err = c.replace(ctx, current, want)
		case differ(current, want):
			changed := current.DeepCopy()
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
	for name, route := range obsolete {
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(route.UID))}
		if err := routes.Delete(ctx, name, options); !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	for _, err := range errs {
		if apierrors.IsConflict(err) {
			return notes, err
		}
	}
	return notes, errors.Join(errs...)
}

// replace deletes a route and creates the desired route in its place.
func (c *Controller) replace(ctx context.Context, current, want *routev1.Route) error {
	routes := c.routes.RouteV1().Routes(want.Namespace)
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(current.UID))}
	if err := routes.Delete(ctx, current.Name, options); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err := routes.Create(ctx, want, metav1.CreateOptions{})
	return err
}

// checkOwner returns an error if a route with the desired name exists and the Ingress does not own
// it.
func (c *Controller) checkOwner(ctx context.Context, ingress *networkingv1.Ingress, want *routev1.Route) error {
	route, err := c.routes.RouteV1().Routes(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil || metav1.IsControlledBy(route, ingress) {
		return err
	}
	return apierrors.NewForbidden(routev1.Resource("routes"), want.Name,
		errors.New("a route with this name exists and does not belong to the Ingress"))
}

// differ reports whether any field that is derived from an Ingress differs.
func differ(existing, want *routev1.Route) bool {
	a, b := existing.Spec.DeepCopy(), want.Spec.DeepCopy()
	a.To.Weight, a.WildcardPolicy = nil, ""
	b.To.Weight, b.WildcardPolicy = nil, ""
	return !equality.Semantic.DeepEqual(a, b) || !equality.Semantic.DeepEqual(existing.Labels, want.Labels) ||
		!equality.Semantic.DeepEqual(existing.Annotations, want.Annotations)
}

// updateStatus updates the Ingress status: it lists the addresses of the routers that admit the
// Ingress's routes.
func (c *Controller) updateStatus(ctx context.Context, ingress *networkingv1.Ingress, routes map[string]*routev1.Route) error {
	var addresses []networkingv1.IngressLoadBalancerIngress
	if !c.serves(ingress) {
		if len(routes) == 0 {
			return nil // another controller writes the status
		}
		routes = nil
	}
	for _, route := range routes {
		for _, router := range route.Status.Ingress {
			admitted := slices.ContainsFunc(router.Conditions, func(condition routev1.RouteIngressCondition) bool {
				return condition.Type == routev1.RouteAdmitted && condition.Status == corev1.ConditionTrue
			})
			if admitted {
				addresses = append(addresses, addressOf(cmp.Or(router.RouterCanonicalHostname, c.Address)))
			}
		}
	}
	compare := func(a, b networkingv1.IngressLoadBalancerIngress) int {
		return cmp.Or(cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.IP, b.IP))
	}
	slices.SortFunc(addresses, compare)
	addresses = slices.CompactFunc(addresses, func(a, b networkingv1.IngressLoadBalancerIngress) bool { return compare(a, b) == 0 })
	if equality.Semantic.DeepEqual(ingress.Status.LoadBalancer.Ingress, addresses) {
		return nil
	}
	changed := ingress.DeepCopy()
	changed.Status.LoadBalancer.Ingress = addresses
	_, err := c.kube.NetworkingV1().Ingresses(ingress.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the concurrent change triggers another reconcile
	}
	return err
}

func addressOf(host string) networkingv1.IngressLoadBalancerIngress {
	if net.ParseIP(host) != nil {
		return networkingv1.IngressLoadBalancerIngress{IP: host}
	}
	return networkingv1.IngressLoadBalancerIngress{Hostname: host}
}
