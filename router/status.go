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
	"github.com/slipway-platform/slipway/router/settings"
)

// statusWriter tells in each route's status what the router decided, in the entry with the router's name. Other routers have entries of their own.
type statusWriter struct {
	client   *rest.RESTClient
	settings settings.Settings

	mu       sync.Mutex
	verdicts []claim.Verdict
	changed  chan struct{}
	once     sync.Once

	written map[string]*writing // by namespace and name of the route; of the writer's goroutine alone
}

// writing is what was written about a route last, and how often somebody else has changed that.
type writing struct {
	entry     routev1.RouteIngress
	contended int
	until     time.Time // nothing is written before
}

const (
	// contentions is how often another router of the same name may disagree before this one holds back, and truce for how long.
	contentions = 3
	truce       = time.Minute
	// statusRetry is when a status that could not be written is tried again.
	statusRetry = time.Second
)

func (w *statusWriter) wake() chan struct{} {
	w.once.Do(func() { w.changed = make(chan struct{}, 1) })
	return w.changed
}

// set gives the verdicts about all routes of the shard.
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
		var again <-chan time.Time
		w.mu.Lock()
		verdicts := w.verdicts
		w.mu.Unlock()
		for _, verdict := range verdicts {
			if ctx.Err() != nil {
				return nil
			}
			if err := w.write(ctx, verdict); err != nil && ctx.Err() == nil {
				slog.Warn("write status of route", "route", describe(verdict.Route), "error", err)
				again = time.After(statusRetry)
			}
		}
		w.forget(verdicts)
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake():
		case <-again:
		}
	}
}

// forget drops what was noted about routes that are gone.
func (w *statusWriter) forget(verdicts []claim.Verdict) {
	known := map[string]bool{}
	for _, verdict := range verdicts {
		known[describe(verdict.Route)] = true
	}
	for name := range w.written {
		if !known[name] {
			delete(w.written, name)
		}
	}
}

// entry is what the status should say.
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

// write brings the status of one route to what it should be.
func (w *statusWriter) write(ctx context.Context, verdict claim.Verdict) error {
	wanted, name := w.entry(verdict), describe(verdict.Route)
	present := own(&verdict.Route.Status, wanted.RouterName)
	if present != nil && same(*present, wanted) {
		return nil
	}
	before := w.written[name]
	if before == nil {
		before = &writing{}
		w.written[name] = before
	}
	now := time.Now()
	if now.Before(before.until) {
		return nil
	}
	wanted.Conditions[0].LastTransitionTime = &metav1.Time{Time: now}
	if present != nil && len(present.Conditions) > 0 && present.Conditions[0].Status == wanted.Conditions[0].Status {
		wanted.Conditions[0].LastTransitionTime = present.Conditions[0].LastTransitionTime
	}
	changed := verdict.Route.DeepCopy()
	if entry := own(&changed.Status, wanted.RouterName); entry != nil {
		*entry = wanted
	} else {
		changed.Status.Ingress = append(changed.Status.Ingress, wanted)
	}
	err := w.client.Put().Namespace(changed.Namespace).Resource("routes").Name(changed.Name).SubResource("status").Body(changed).Do(ctx).Error()
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // its change is on the way here
	}
	if err != nil {
		return err
	}
	if same(before.entry, wanted) { // it was there already, and somebody has overwritten it
		before.contended++
	}
	if before.contended >= contentions {
		before.contended, before.until = 0, now.Add(truce)
		slog.Warn("another router of the same name disagrees about a route; give routers different ROUTER_SERVICE_NAMEs", "route", name, "router", wanted.RouterName)
	}
	before.entry = wanted
	return nil
}

// own is a router's entry, or nil.
func own(status *routev1.RouteStatus, router string) *routev1.RouteIngress {
	for i := range status.Ingress {
		if status.Ingress[i].RouterName == router {
			return &status.Ingress[i]
		}
	}
	return nil
}

// same compares entries but for the times of their conditions.
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
