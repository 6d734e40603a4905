package router

import (
	"context"
	"log/slog"
	"sync"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/router/claim"
	"github.com/slipway-platform/slipway/router/environment"
)

// statusWriter writes the router's decisions to the route status, in the entry with the router's
// name. Other routers have their own entries.
type statusWriter struct {
	client   *rest.RESTClient
	settings environment.Settings
	outdated func() // called if a decision is for an old version of its route

	mu       sync.Mutex
	verdicts []claim.Verdict
	changed  chan struct{}
	once     sync.Once

	// writes is keyed by the route's namespace/name. Only the writer's goroutine changes it.
	writes map[string]*writing
}

// writing contains the last status that was written for a route, and the number of times that
// another router has overwritten it.
type writing struct {
	entry     routev1.RouteIngress
	contended int
	until     time.Time // earliest time of the next write
	// expected is the entry in the status of the route's newest version, or nil if it is unknown.
	// It is set before the request is sent, because the informer can deliver the new version before
	// the response arrives. replaced is the version of the route that the request replaces.
	expected *routev1.RouteIngress
	replaced string
}

const (
	// contentions is the number of times that another router with the same name can overwrite an
	// entry before this router pauses for contentionDelay.
	contentions     = 3
	contentionDelay = time.Minute
	// statusRetry is the delay before a failed write is retried.
	statusRetry = time.Second
)

func (w *statusWriter) wake() chan struct{} {
	w.once.Do(func() { w.changed = make(chan struct{}, 1) })
	return w.changed
}

// set sets the decisions for all routes in the shard.
func (w *statusWriter) set(verdicts []claim.Verdict) {
	w.mu.Lock()
	w.verdicts = verdicts
	w.mu.Unlock()
	select {
	case w.wake() <- struct{}{}:
	default:
	}
}

func (w *statusWriter) run(ctx context.Context) error {
	for {
		var retry <-chan time.Time
		w.mu.Lock()
		verdicts := w.verdicts
		w.mu.Unlock()
		for _, verdict := range verdicts {
			if ctx.Err() != nil {
				return nil
			}
			if err := w.write(ctx, verdict); err != nil && ctx.Err() == nil {
				slog.Warn("cannot write route status", "route", describe(verdict.Route), "error", err)
				retry = time.After(statusRetry)
			}
		}
		w.forget(verdicts)
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake():
		case <-retry:
		}
	}
}

// forget removes the records of deleted routes.
func (w *statusWriter) forget(verdicts []claim.Verdict) {
	hosts := map[string]bool{}
	for _, verdict := range verdicts {
		hosts[describe(verdict.Route)] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.writes {
		if !hosts[name] {
			delete(w.writes, name)
		}
	}
}

// wrote reports whether the router's entry in a route's status is the last entry that the writer
// wrote.
func (w *statusWriter) wrote(route *routev1.Route) bool {
	present := ingressOf(&route.Status, canonical(w.settings))
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.writes[describe(route)]
	return present != nil && last != nil && last.expected != nil && same(*present, *last.expected)
}

// expect records the entry that a request writes, or nil if the request has failed.
func (w *statusWriter) expect(last *writing, entry *routev1.RouteIngress, replaced string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last.expected, last.replaced = entry, replaced
}

// entry returns the desired status entry for a decision.
func (w *statusWriter) entry(verdict claim.Verdict) routev1.RouteIngress {
	condition := routev1.RouteIngressCondition{
		Type: routev1.RouteAdmitted, Status: corev1.ConditionTrue, Reason: verdict.Reason, Message: verdict.Message,
	}
	if !verdict.Admitted() {
		condition.Status = corev1.ConditionFalse
	}
	return routev1.RouteIngress{
		Host: verdict.Route.Spec.Host, RouterName: canonical(w.settings), WildcardPolicy: verdict.Route.Spec.WildcardPolicy,
		RouterCanonicalHostname: w.settings.Text("ROUTER_CANONICAL_HOSTNAME"), Conditions: []routev1.RouteIngressCondition{condition},
	}
}

// write updates the status of one route.
func (w *statusWriter) write(ctx context.Context, verdict claim.Verdict) error {
	desired, name := w.entry(verdict), describe(verdict.Route)
	present := ingressOf(&verdict.Route.Status, desired.RouterName)
	if present != nil && same(*present, desired) {
		return nil
	}
	before := w.writingOf(name)
	now := time.Now()
	if now.Before(before.until) {
		return nil
	}
	if version := verdict.Route.ResourceVersion; before.expected != nil && before.replaced == version && same(*before.expected, desired) {
		return nil // the entry was written after the decision had read the route
	}
	desired.Conditions[0].LastTransitionTime = &metav1.Time{Time: now}
	if present != nil && len(present.Conditions) > 0 && present.Conditions[0].Status == desired.Conditions[0].Status {
		desired.Conditions[0].LastTransitionTime = present.Conditions[0].LastTransitionTime
	}
	changed := verdict.Route.DeepCopy()
	if entry := ingressOf(&changed.Status, desired.RouterName); entry != nil {
		*entry = desired
	} else {
		changed.Status.Ingress = append(changed.Status.Ingress, desired)
	}
	w.expect(before, &desired, changed.ResourceVersion)
	err := w.client.Put().Namespace(changed.Namespace).Resource("routes").Name(changed.Name).SubResource("status").Body(changed).Do(ctx).Error()
	if err != nil {
		w.expect(before, nil, "")
	}
	if apierrors.IsConflict(err) {
		w.outdated()
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the informer delivers the newer version
	}
	if err != nil {
		return err
	}
	if same(before.entry, desired) { // another router has overwritten the entry
		before.contended++
	}
	if before.contended >= contentions {
		before.contended, before.until = 0, now.Add(contentionDelay)
		slog.Warn("another router with the same name reports a different status of the route; give each router its own ROUTER_SERVICE_NAME",
			"route", name, "router", desired.RouterName)
	}
	before.entry = desired
	return nil
}

// writingOf returns a route's record, which it creates if necessary.
func (w *statusWriter) writingOf(name string) *writing {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.writes[name]
	if last == nil {
		last = &writing{}
		w.writes[name] = last
	}
	return last
}

// ingressOf returns a router's entry in a route's status, or nil.
func ingressOf(status *routev1.RouteStatus, router string) *routev1.RouteIngress {
	for i := range status.Ingress {
		if status.Ingress[i].RouterName == router {
			return &status.Ingress[i]
		}
	}
	return nil
}

// same reports whether two entries are equal, ignoring the times of their conditions.
func same(a, b routev1.RouteIngress) bool {
	if len(a.Conditions) != len(b.Conditions) || a.Host != b.Host || a.RouterName != b.RouterName ||
		a.WildcardPolicy != b.WildcardPolicy || a.RouterCanonicalHostname != b.RouterCanonicalHostname {
		return false
	}
	for i, condition := range a.Conditions {
		other := b.Conditions[i]
		if condition.Type != other.Type || condition.Status != other.Status || condition.Reason != other.Reason || condition.Message != other.Message {
			return false
		}
	}
	return true
}
