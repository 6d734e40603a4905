package volumeplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

const (
	// recoveryTimeout is how long the attach-detach controller's start waits for detaches.
	recoveryTimeout = 10 * time.Second
	// After a failed detach, the backoff doubles from minBackoff up to maxBackoff.
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
	// While another master might be calling the driver, a detach is attempted every
	// foreignCallInterval.
	foreignCallInterval = 5 * time.Second
)

// DetachRecovery runs before the attach-detach controller starts. It detaches volumes that an
// earlier controller was attaching or detaching when it was killed. These volumes are recorded but
// missing from the node's status, so upstream does not track them and no node uses them. If a pod
// still needs one of the volumes, the controller attaches it again.
type DetachRecovery struct {
	Client      kubernetes.Interface
	Registry    *flexvolume.Registry
	Attachments *Attachments
}

// Name returns the component's name.
func (l *DetachRecovery) Name() string { return "flexvolume-recovery" }

// Run calls ready when all volumes are released, or after recoveryTimeout. It retries the remaining
// volumes until ctx is done.
func (l *DetachRecovery) Run(ctx context.Context, ready func()) error {
	startCtx, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		for _, a := range l.recorded(ctx) {
			work.Go(func() { l.release(ctx, a) })
		}
	})
	go func() { work.Wait(); cancel() }()
	<-startCtx.Done()
	if ctx.Err() == nil {
		ready()
	}
	<-ctx.Done()
	return nil
}

// recorded returns all recorded attachments, including those of earlier versions. It retries until
// the API server responds.
func (l *DetachRecovery) recorded(ctx context.Context) []attachment {
	list := l.Attachments.list()
	if l.Attachments.Shared == nil {
		return list
	}
	for {
		err := l.Attachments.Shared.convert(ctx)
		if err == nil {
			var shared []attachment
			if shared, err = l.Attachments.Shared.list(ctx); err == nil {
				return append(list, shared...)
			}
		}
		if ctx.Err() == nil {
			slog.Warn("cannot find FlexVolumes that a lost master attached", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(minBackoff):
		}
	}
}

// release detaches the volume and retries with backoff. It stops when the volume is detached, or
// when the node's status lists the volume, because upstream's controller then handles it.
func (l *DetachRecovery) release(ctx context.Context, a attachment) {
	for delay := minBackoff; ; delay = min(2*delay, maxBackoff) {
		complete, err := inStatus(ctx, l.Client, a)
		if !complete && err == nil {
			complete, err = l.Attachments.release(ctx, l.Registry, a)
		}
		if complete || ctx.Err() != nil {
			return
		}
		if foreign := (foreignCallError{}); errors.As(err, &foreign) {
			delay = foreignCallInterval
		}
		if err != nil {
			slog.Warn("cannot detach FlexVolume that a crashed process attached", "driver", a.driver, "volume", a.volume, "node", a.node, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// inStatus reports whether the node's status lists the attachment, so that upstream's controller
// finds it on startup.
func inStatus(ctx context.Context, client kubernetes.Interface, a attachment) (bool, error) {
	node, err := readNode(ctx, client, a.node)
	return slices.ContainsFunc(node.Status.VolumesAttached, func(v corev1.AttachedVolume) bool { return string(v.Name) == a.key() }), err
}

// isInUse reports whether the node has mounted the volume, or is about to mount it. A node that is
// out of service uses no volumes.
func isInUse(ctx context.Context, client kubernetes.Interface, a attachment) (bool, error) {
	node, err := readNode(ctx, client, a.node)
	return !isOutOfService(node) && slices.Contains(node.Status.VolumesInUse, corev1.UniqueVolumeName(a.key())), err
}

// readNode returns a Node. The result is empty if the Node does not exist.
func readNode(ctx context.Context, client kubernetes.Interface, name string) (*corev1.Node, error) {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &corev1.Node{}, nil
	}
	if err != nil {
		return &corev1.Node{}, fmt.Errorf("read node %q: %w", name, err)
	}
	return node, nil
}

// isOutOfService reports whether an administrator has confirmed that a node is off.
func isOutOfService(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}
