package volumeplugin

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	events "k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

const (
	// DriversCondition is the Node condition that is False while one of the node's FlexVolume
	// drivers cannot be used, or does not release a volume. A node that never had drivers does not
	// have this condition.
	DriversCondition corev1.NodeConditionType = "FlexVolumeDriversReady"
	// DriversAnnotation is the Node annotation that contains the node's ReportedDrivers, in JSON.
	DriversAnnotation = "slipway.openshift.io/flexvolume-drivers"
)

// Reasons for the condition and for the Node's events.
const (
	reasonReady    = "FlexVolumeDriversReady"
	reasonFailed   = "FlexVolumeDriverFailed"
	reasonRelease  = "FlexVolumeNotReleased"
	reasonRecovery = "FlexVolumeDriverReady"
)

const (
	reportInterval = 10 * time.Second
	// maxConditionLength is the maximum length of a condition's message, in bytes. Longer messages
	// are truncated.
	maxConditionLength = 2000
)

// ReportedDriver is a driver's state on a node.
type ReportedDriver struct {
	Driver       string           `json:"driver"`
	State        flexvolume.State `json:"state"`
	Version      string           `json:"version,omitempty"`
	Capabilities string           `json:"capabilities,omitempty"`
	Error        string           `json:"error,omitempty"`
}

// Report publishes the state of a node's drivers on its Node object. It writes a condition, an
// annotation for `slipway flexvolume list --all-nodes`, and an event for each change.
type Report struct {
	// Client must be allowed to patch the node's status and create events.
	Client   kubernetes.Interface
	NodeName string
	Registry *flexvolume.Registry
	// KeepDirs lists the directories of the Registries on this host: the node's Registry, and the
	// control plane's Registry, which detaches volumes.
	KeepDirs []string
}

// Name returns the component's name.
func (*Report) Name() string { return "flexvolume-report" }

// Run publishes reports until ctx is done. It calls ready immediately, because no component depends
// on the report.
func (r *Report) Run(ctx context.Context, ready func()) error {
	ready()
	broadcaster := events.NewBroadcaster(events.WithContext(ctx))
	broadcaster.StartRecordingToSink(&coreclient.EventSinkImpl{Interface: r.Client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "flexvolume", Host: r.NodeName})
	published := r.stored(ctx)
	ticker := time.NewTicker(reportInterval)
	defer ticker.Stop()
	for {
		changed := r.Registry.Changed()
		current := r.current(published)
		current.since = published.since
		if err := r.publish(ctx, &current, published); err == nil {
			r.recordEvents(recorder, current, published)
			published = current
		} else if ctx.Err() == nil && !apierrors.IsNotFound(err) {
			slog.Warn("cannot report FlexVolume drivers of the node", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-ticker.C:
		}
	}
}

// report is the state that a node publishes: its drivers and their problems.
type report struct {
	drivers []ReportedDriver
	// problems maps subjects to problems. A subject is a driver, or a call that did not release a
	// volume.
	problems map[string]problem
	// since is the time of the condition's last transition.
	since metav1.Time
}

type problem struct{ reason, message string }

// stored returns the initial value of the published report. It is empty if the Node has no report.
// Otherwise, it differs from every report, so that the next report replaces the report that an
// earlier process published.
func (r *Report) stored(ctx context.Context) report {
	node, err := r.Client.CoreV1().Nodes().Get(ctx, r.NodeName, metav1.GetOptions{})
	if err != nil || node.Annotations[DriversAnnotation] == "" {
		return report{}
	}
	return report{drivers: []ReportedDriver{{}}} // differs from every report
}

// current returns the state of all drivers. While a driver's next init runs, the report still
// contains the driver's problem.
func (r *Report) current(published report) report {
	now := report{problems: map[string]problem{}}
	for _, e := range r.Registry.List() {
		d := ReportedDriver{Driver: e.Name, State: e.State, Version: e.Version}
		if e.Driver != nil && e.State == flexvolume.StateReady {
			d.Capabilities = e.Driver.Capabilities().String()
		}
		if e.Err != nil {
			d.Error = e.Err.Error()
			now.problems[e.Name] = problem{reasonFailed, e.Name + ": " + d.Error}
		}
		if p, ok := published.problems[e.Name]; ok && e.State == flexvolume.StateInitializing {
			now.problems[e.Name] = p
		}
		now.drivers = append(now.drivers, d)
	}
	for _, dir := range r.KeepDirs {
		calls, err := flexvolume.FailedReleases(dir)
		if err != nil {
			slog.Warn("cannot read FlexVolume driver calls", "error", err)
		}
		for _, call := range calls {
			message := call.Message
			if call.PID > 0 {
				message = fmt.Sprintf("process %d of FlexVolume driver %q has been running since %s: %s", call.PID, call.Driver, call.Start.UTC().Format(time.RFC3339), call)
			}
			now.problems[call.Driver+" "+call.Path] = problem{reasonRelease, fmt.Sprintf("%s: %s", call, message)}
		}
	}
	return now
}

// condition returns the condition, or nil for a node without drivers.
func (r report) condition() *corev1.NodeCondition {
	if len(r.drivers)+len(r.problems) == 0 {
		return nil
	}
	c := &corev1.NodeCondition{Type: DriversCondition, Status: corev1.ConditionTrue, Reason: reasonReady, Message: "all FlexVolume drivers of the node are ready"}
	var messages []string
	for _, subject := range slices.Sorted(maps.Keys(r.problems)) {
		p := r.problems[subject]
		c.Status, c.Reason = corev1.ConditionFalse, p.reason
		messages = append(messages, p.message)
	}
	if len(messages) > 0 {
		c.Message = strings.Join(messages, "; ")
	}
	if len(c.Message) > maxConditionLength {
		c.Message = strings.ToValidUTF8(c.Message[:maxConditionLength], "") + "..."
	}
	return c
}

// publish patches the Node if the report has changed since it was last published.
func (r *Report) publish(ctx context.Context, current *report, published report) error {
	was, is := published.condition(), current.condition()
	sameCondition := was == is || was != nil && is != nil && *was == *is
	if sameCondition && slices.Equal(published.drivers, current.drivers) {
		return nil
	}
	drivers, err := json.Marshal(current.drivers)
	if err != nil {
		return fmt.Errorf("encode FlexVolume drivers of node %q: %w", r.NodeName, err)
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]string{DriversAnnotation: string(drivers)}}}
	if is == nil { // the last driver has been removed
		is = &corev1.NodeCondition{Type: DriversCondition, Status: corev1.ConditionTrue, Reason: reasonReady, Message: "the node has no FlexVolume drivers"}
	}
	updated := *is
	updated.LastHeartbeatTime = metav1.Now()
	if current.since.IsZero() || was == nil || was.Status != is.Status {
		current.since = updated.LastHeartbeatTime
	}
	updated.LastTransitionTime = current.since
	patch["status"] = map[string]any{"conditions": []corev1.NodeCondition{updated}}
	content, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode FlexVolume drivers of node %q: %w", r.NodeName, err)
	}
	if _, err := r.Client.CoreV1().Nodes().PatchStatus(ctx, r.NodeName, content); err != nil {
		return fmt.Errorf("patch status of node %q: %w", r.NodeName, err)
	}
	return nil
}

// recordEvents records an event for each new problem, and for each driver that can be used again.
func (r *Report) recordEvents(recorder events.EventRecorder, current, published report) {
	// As in the kubelet's own events, the UID is the node's name, because `oc describe node`
	// selects events by this UID.
	node := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: r.NodeName, UID: types.UID(r.NodeName)}
	for _, subject := range slices.Sorted(maps.Keys(current.problems)) {
		if p := current.problems[subject]; p != published.problems[subject] {
			recorder.Event(node, corev1.EventTypeWarning, p.reason, p.message)
		}
	}
	for _, d := range current.drivers {
		if published.problems[d.Driver].reason == reasonFailed && d.State == flexvolume.StateReady {
			recorder.Eventf(node, corev1.EventTypeNormal, reasonRecovery, "FlexVolume driver %q is ready", d.Driver)
		}
	}
}
