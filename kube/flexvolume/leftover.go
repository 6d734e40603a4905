package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	engine "github.com/slipway-platform/slipway/storage/flexvolume"
)

const (
	// leftoverWait is how long the attach-detach controller waits for what is detached before its start.
	leftoverWait = 10 * time.Second
	// A detach that fails is tried again after firstLeftover, then after twice the time, and so on to lastLeftover.
	firstLeftover = time.Second
	lastLeftover  = 5 * time.Minute
)

// Leftovers detaches, before the attach-detach controller starts, what an earlier one was attaching or detaching when it was killed: noted, but not
// in the status of the node, so that upstream does not know of it and no node uses it. What a pod still wants is attached anew.
type Leftovers struct {
	Client      kubernetes.Interface
	Registry    *engine.Registry
	Attachments *Attachments
}

// Name is the part's name.
func (l *Leftovers) Name() string { return "flexvolume-leftovers" }

// Run calls ready when everything has been detached, or has not been within ten seconds, and goes on until it has been.
func (l *Leftovers) Run(ctx context.Context, ready func()) error {
	first, cancel := context.WithTimeout(ctx, leftoverWait)
	defer cancel()
	var work sync.WaitGroup
	defer work.Wait()
	for _, a := range l.Attachments.all() {
		work.Go(func() { l.release(ctx, a) })
	}
	go func() { work.Wait(); cancel() }()
	<-first.Done()
	if ctx.Err() == nil {
		ready()
	}
	<-ctx.Done()
	return nil
}

// release tries until the attachment is gone, or upstream knows of it.
func (l *Leftovers) release(ctx context.Context, a attachment) {
	for delay := firstLeftover; ; delay = min(2*delay, lastLeftover) {
		done, err := inStatus(ctx, l.Client, a)
		if !done && err == nil {
			done, err = l.Attachments.leave(a, func() error { return detach(ctx, l.Registry, a) })
		}
		if done || ctx.Err() != nil {
			return
		}
		slog.Warn("detach FlexVolume that was attached before a crash", "driver", a.driver, "volume", a.volume, "node", a.node, "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// detach calls the last known version of the driver; one that lacks the operation has nothing to do.
func detach(ctx context.Context, registry *engine.Registry, a attachment) error {
	driver, err := registry.InUse(a.driver)
	if err != nil {
		return err
	}
	if err := driver.Detach(ctx, a.volume, a.node); err != nil && !errors.Is(err, engine.ErrNotSupported) {
		return err
	}
	return nil
}

// inStatus says whether the node's status has the attachment, by which upstream's controller finds it at its start.
func inStatus(ctx context.Context, client kubernetes.Interface, a attachment) (bool, error) {
	node, err := client.CoreV1().Nodes().Get(ctx, a.node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read status of node %q: %w", a.node, err)
	}
	for _, volume := range node.Status.VolumesAttached {
		if string(volume.Name) == a.driver+"/"+a.volume {
			return true, nil
		}
	}
	return false, nil
}
