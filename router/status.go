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

	mu       sync.Mutex
	verdicts []claim.Verdict
	changed  chan struct{}
	once     sync.Once

	writes map[string]*writing // by namespace/name of the route; used only by the writer's goroutine
}

// writing contains the last status that was written for a route, and the number of times that
// another router has overwritten it.
type writing struct {
	entry     routev1.RouteIngress
	contended int
	until     time.Time // time before which nothing is written
}

const (
	// contentions is the number of times that another router with the same name may overwrite an
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
	for name := range w.writes {
		if !hosts[name] {
			delete(w.writes, name)
		}
	}
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
	before := w.writes[name]
	if before == nil {
		before = &writing{}
		w.writes[name] = before
	}
	now := time.Now()
	if now.Before(before.until) {
		return nil
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
	err := w.client.Put().Namespace(changed.Namespace).Resource("routes").Name(changed.Name).SubResource("status").Body(changed).Do(ctx).Error()
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the informer delivers the newer version later
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
