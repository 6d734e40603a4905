// Package health tells the users of claims by events when a CSI driver says that a volume is ill, and when it is well again
// (specification of CSI 1.13, ControllerListVolumeHealth and ControllerGetVolumeHealth).
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

// Options are what an administrator may choose.
type Options struct {
	// Interval is how often the driver is asked; 0 means a minute.
	Interval time.Duration
}

// watcher asks one driver.
type watcher struct {
	*session.Session
	Options
	ill map[string]string // what was told of volumes that are ill, by handle
}

// Feature makes the loop of a driver that knows the health of volumes.
func Feature(options Options) session.Feature {
	if options.Interval == 0 {
		options.Interval = time.Minute
	}
	return func(s *session.Session) ([]controller.Loop, error) {
		if !s.Description.Can(csi.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH) {
			return nil, nil
		}
		core := s.Informers.Core().V1()
		w := &watcher{Session: s, Options: options, ill: map[string]string{}}
		return []controller.Loop{{
			Name: "health",
			// One key for all volumes: it comes with the first, and then by the clock.
			Watches: []controller.Watch{{Informer: core.PersistentVolumes().Informer(), Keys: w.key, Changed: session.Unchanged}},
			Reads:   []cache.SharedIndexInformer{core.PersistentVolumeClaims().Informer(), core.Nodes().Informer()},
			Workers: 1, Retry: options.Interval, RetryMax: 10 * options.Interval, Reconcile: w.reconcile,
		}}, nil
	}
}

func (w *watcher) key(object any) []controller.Key {
	volume, ok := object.(*corev1.PersistentVolume)
	if !ok {
		return nil
	}
	if own, err := w.Own(volume); err != nil || own == nil {
		return nil
	}
	return []controller.Key{{Name: w.Description.Name}}
}

func (w *watcher) reconcile(ctx context.Context, _ controller.Key) error {
	claims, err := w.claims()
	if err != nil {
		return err
	}
	ask := w.each
	if w.Description.Can(csi.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH) {
		ask = w.list
	}
	now, err := ask(ctx, claims)
	if err != nil {
		return err
	}
	w.tell(claims, now)
	w.ill = now
	return controller.After(w.Interval)
}

// claims are the claims of the driver's volumes, by handle.
func (w *watcher) claims() (map[string]*corev1.PersistentVolumeClaim, error) {
	claims, err := w.Informers.Core().V1().PersistentVolumeClaims().Lister().List(labels.Everything())
	if err != nil {
		return nil, err
	}
	found := map[string]*corev1.PersistentVolumeClaim{}
	for _, claim := range claims {
		if volume, err := w.Claimed(claim); err == nil && volume != nil {
			found[volume.Spec.CSI.VolumeHandle] = claim
		}
	}
	return found, nil
}

// list asks for all volumes that are ill at once.
func (w *watcher) list(ctx context.Context, _ map[string]*corev1.PersistentVolumeClaim) (map[string]string, error) {
	ill := map[string]string{}
	for token := ""; ; {
		page, err := w.Driver.Controller().ControllerListVolumeHealth(ctx, &csi.ControllerListVolumeHealthRequest{StartingToken: token})
		if err != nil {
			return nil, err
		}
		for _, volume := range page.GetEntries() {
			note(ill, volume)
		}
		if token = page.GetNextToken(); token == "" {
			return ill, nil
		}
	}
}

// each asks for one volume after the other.
func (w *watcher) each(ctx context.Context, claims map[string]*corev1.PersistentVolumeClaim) (map[string]string, error) {
	ill := map[string]string{}
	for handle := range claims {
		answer, err := w.Driver.Controller().ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: handle})
		if driver.CodeOf(err) == codes.NotFound {
			ill[handle] = "the driver does not know the volume"
			continue
		}
		if err != nil {
			return nil, err
		}
		note(ill, answer.GetVolumeHealth())
	}
	return ill, nil
}

func note(ill map[string]string, volume *csi.VolumeHealth) {
	var words []string
	for _, entry := range volume.GetHealthStatuses() {
		words = append(words, strings.TrimSpace(fmt.Sprintf("%s %s", strings.ToLower(entry.GetStatus().String()), entry.GetMessage())))
	}
	if len(words) > 0 {
		ill[volume.GetVolumeId()] = strings.Join(words, ", ")
	}
}

// tell tells what has changed.
func (w *watcher) tell(claims map[string]*corev1.PersistentVolumeClaim, now map[string]string) {
	for handle, claim := range claims {
		switch before := w.ill[handle]; {
		case now[handle] == before:
		case now[handle] == "":
			w.Events.Event(claim, corev1.EventTypeNormal, "VolumeConditionNormal", "The volume is well again.")
		default:
			w.Events.Event(claim, corev1.EventTypeWarning, "VolumeConditionAbnormal", "The volume is not well: "+now[handle]+".")
		}
	}
}
