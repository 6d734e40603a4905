// Package health creates events on claims when a CSI driver reports that a volume has become
// unhealthy or healthy again (CSI specification 1.13, ControllerListVolumeHealth and
// ControllerGetVolumeHealth).
package health

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

// Options configures health monitoring.
type Options struct {
	// Interval is the interval at which health is queried. The default is 1 minute.
	Interval time.Duration
}

// monitor monitors the health of one driver's volumes.
type monitor struct {
	*session.Session
	Options
	unhealthy map[string]string // last reported problems by volume handle
}

// Feature returns the controller for a driver that supports GET_VOLUME_HEALTH.
func Feature(options Options) session.Feature {
	if options.Interval == 0 {
		options.Interval = time.Minute
	}
	return func(s *session.Session) ([]controller.Controller, error) {
		if !s.Description.Can(csi.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH) {
			return nil, nil
		}
		core := s.Informers.Core().V1()
		w := &monitor{Session: s, Options: options, unhealthy: map[string]string{}}
		return []controller.Controller{{
			Name: "health",
			// All volumes share one key. The first volume adds the key, and reconcile requeues it.
			Watches: []controller.Watch{{Informer: core.PersistentVolumes().Informer(), Keys: w.key, Changed: session.IgnoreUpdates}},
			Reads:   []cache.SharedIndexInformer{core.PersistentVolumeClaims().Informer(), core.Nodes().Informer()},
			Workers: 1, MinBackoff: options.Interval, MaxBackoff: 10 * options.Interval, Reconcile: w.reconcile,
		}}, nil
	}
}

func (w *monitor) key(object any) []controller.Key {
	volume, ok := object.(*corev1.PersistentVolume)
	if !ok {
		return nil
	}
	if translated, err := w.OwnVolume(volume); err != nil || translated == nil {
		return nil
	}
	return []controller.Key{{Name: w.Description.Name}}
}

func (w *monitor) reconcile(ctx context.Context, _ controller.Key) error {
	claims, err := w.claims()
	if err != nil {
		return err
	}
	fetch := w.getHealth
	if w.Description.Can(csi.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH) {
		fetch = w.listHealth
	}
	unhealthy, err := fetch(ctx, claims)
	if err != nil {
		return err
	}
	w.recordEvents(claims, unhealthy)
	w.unhealthy = unhealthy
	return controller.RequeueAfter(w.Interval)
}

// claims returns the claims of the driver's volumes, keyed by volume handle.
func (w *monitor) claims() (map[string]*corev1.PersistentVolumeClaim, error) {
	claims, err := w.Informers.Core().V1().PersistentVolumeClaims().Lister().List(labels.Everything())
	if err != nil {
		return nil, err
	}
	claimsByHandle := map[string]*corev1.PersistentVolumeClaim{}
	for _, claim := range claims {
		if volume, err := w.BoundVolume(claim); err == nil && volume != nil {
			claimsByHandle[volume.Spec.CSI.VolumeHandle] = claim
		}
	}
	return claimsByHandle, nil
}

// listHealth lists all unhealthy volumes.
func (w *monitor) listHealth(ctx context.Context, _ map[string]*corev1.PersistentVolumeClaim) (map[string]string, error) {
	unhealthy := map[string]string{}
	for token := ""; ; {
		page, err := w.Driver.Controller().ControllerListVolumeHealth(ctx, &csi.ControllerListVolumeHealthRequest{StartingToken: token})
		if err != nil {
			return nil, err
		}
		for _, volume := range page.GetEntries() {
			addUnhealthy(unhealthy, volume)
		}
		if token = page.GetNextToken(); token == "" {
			return unhealthy, nil
		}
	}
}

// getHealth queries the health of each volume separately.
func (w *monitor) getHealth(ctx context.Context, claims map[string]*corev1.PersistentVolumeClaim) (map[string]string, error) {
	unhealthy := map[string]string{}
	for handle := range claims {
		resp, err := w.Driver.Controller().ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: handle})
		if driver.CodeOf(err) == codes.NotFound {
			unhealthy[handle] = "the volume is unknown to the driver"
			continue
		}
		if err != nil {
			return nil, err
		}
		addUnhealthy(unhealthy, resp.GetVolumeHealth())
	}
	return unhealthy, nil
}

func addUnhealthy(unhealthy map[string]string, volume *csi.VolumeHealth) {
	var messages []string
	for _, entry := range volume.GetHealthStatuses() {
		messages = append(messages, strings.TrimSpace(fmt.Sprintf("%s %s", strings.ToLower(entry.GetStatus().String()), entry.GetMessage())))
	}
	if len(messages) > 0 {
		unhealthy[volume.GetVolumeId()] = strings.Join(messages, ", ")
	}
}

// recordEvents creates an event for each claim whose volume's health has changed.
func (w *monitor) recordEvents(claims map[string]*corev1.PersistentVolumeClaim, unhealthy map[string]string) {
	for handle, claim := range claims {
		switch previous := w.unhealthy[handle]; {
		case unhealthy[handle] == previous:
		case unhealthy[handle] == "":
			w.Events.Event(claim, corev1.EventTypeNormal, "VolumeConditionNormal", "The volume is healthy again.")
		default:
			w.Events.Event(claim, corev1.EventTypeWarning, "VolumeConditionAbnormal", "The volume is unhealthy: "+unhealthy[handle]+".")
		}
	}
}
