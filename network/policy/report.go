package policy

import (
	"context"
	"log/slog"
	"strings"

	networkv1 "github.com/openshift/api/network/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/network/egressip"
)

// reporter reports closed projects in a note of the component. It reports egress firewalls whose
// rules do not apply both in the note and as events on their policies.
type reporter struct {
	client  kubernetes.Interface
	node    string
	note    func(text string)
	current string               // the current note
	events  chan []*corev1.Event // the latest events, which run creates
	written map[string]bool      // names of the events that run has created
}

// reason is the Reason field of the events.
const reason = "EgressNetworkPolicyNotApplied"

func newReporter(e *Enforcer) *reporter {
	r := &reporter{client: e.Client, node: e.NodeName, note: e.note, events: make(chan []*corev1.Event, 1), written: map[string]bool{}}
	if r.note == nil {
		r.note = func(string) {}
	}
	return r
}

// report reports the closed projects, and the problems with firewalls and egress addresses. held is
// the error from the assignment of egress addresses to this host's device. report does not wait for
// the API server.
func (r *reporter) report(closed []string, firewalls map[string]firewall, exits map[string]egressip.Exit, held error) {
	var notes []string
	if len(closed) > 0 {
		notes = append(notes, "the network policies are too large, so all connections of pods are dropped in the projects "+strings.Join(closed, ", "))
	}
	var events []*corev1.Event
	for _, project := range sortedKeys(firewalls) {
		f := firewalls[project]
		if f.problem == "" {
			continue
		}
		notes = append(notes, f.problem)
		for _, policy := range f.policies {
			events = append(events, r.event(policy, f.problem))
		}
	}
	for _, project := range sortedKeys(exits) {
		if problem := exits[project].Problem; problem != "" {
			notes = append(notes, problem)
			events = append(events, r.egressEvent("NetNamespace", project, problem))
		}
	}
	if held != nil {
		problem := strings.ReplaceAll(held.Error(), "\n", "; ")
		notes = append(notes, problem)
		events = append(events, r.egressEvent("HostSubnet", r.node, problem))
	}
	if text := strings.Join(notes, "; "); text != r.current {
		r.note(text)
		r.current = text
	}
	select { // replace events that run has not received
	case <-r.events:
	default:
	}
	r.events <- events
}

// event returns an event for a problem. All nodes use the same event name, so that a problem has
// only one event.
func (r *reporter) event(policy *networkv1.EgressNetworkPolicy, problem string) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: policy.Namespace, Name: "egressnetworkpolicy." + hash(string(policy.UID), problem)},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: networkv1.GroupVersion.String(), Kind: "EgressNetworkPolicy",
			Namespace: policy.Namespace, Name: policy.Name, UID: policy.UID,
		},
		Reason: reason, Message: problem, Type: corev1.EventTypeWarning,
		Source:         corev1.EventSource{Component: "network-policy", Host: r.node},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}

// egressEvent returns an event for an egress address that cannot be used. Events for objects
// without a namespace are in the default namespace.
func (r *reporter) egressEvent(kind, name, problem string) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "egressip." + hash(kind, name, problem)},
		InvolvedObject: corev1.ObjectReference{APIVersion: networkv1.GroupVersion.String(), Kind: kind, Name: name},
		Reason:         "EgressIPNotApplied", Message: problem, Type: corev1.EventTypeWarning,
		Source:         corev1.EventSource{Component: "network-policy", Host: r.node},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}

// run creates events until ctx is done. If the API server rejects an event, run retries after the
// next report.
func (r *reporter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case events := <-r.events:
			names := map[string]bool{}
			for _, event := range events {
				names[event.Name] = r.written[event.Name] || r.create(ctx, event)
			}
			r.written = names
		}
	}
}

// create creates an event. It reports whether the event exists afterwards.
func (r *reporter) create(ctx context.Context, event *corev1.Event) bool {
	_, err := r.client.CoreV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		if ctx.Err() == nil {
			slog.Warn("cannot create network event", "namespace", event.Namespace, "error", err)
		}
		return false
	}
	return true
}
