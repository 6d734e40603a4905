package attach

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

// protection tracks the finalizers of PersistentVolumes, because the cache lags behind.
type protection struct {
	locks session.Locks // by PersistentVolume; held while the finalizer is added or removed

	mu            sync.Mutex
	removed       map[types.UID]bool      // the finalizer was removed and not added again
	detachedSince map[types.UID]time.Time // time since which a PersistentVolume is detached
}

// protect adds the finalizer to a PersistentVolume before it is attached, because detaching needs
// the PersistentVolume.
func (a *attacher) protect(ctx context.Context, pv *corev1.PersistentVolume) error {
	defer a.protection.locks.Lock(pv.Name)()
	if a.hasFinalizer(pv.Finalizers) && !a.protection.isRemoved(pv.UID) {
		return nil
	}
	if err := a.patchVolume(ctx, pv, object{"finalizers": []string{a.finalizer}}); err != nil {
		return err
	}
	a.protection.setRemoved(pv.UID, false)
	return nil
}

// reconcileProtection removes the finalizer of a detached PersistentVolume: immediately if it is
// being deleted, else after FinalizerDelay.
func (a *attacher) reconcileProtection(ctx context.Context, key controller.Key) error {
	pv, err := a.volumes.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read PersistentVolume %q: %w", key.Name, err)
	}
	if !a.isOwnVolume(pv) || !a.hasFinalizer(pv.Finalizers) {
		a.protection.clearDetached(pv.UID)
		return nil
	}
	defer a.protection.locks.Lock(pv.Name)()
	if len(a.AttachmentsOf(pv.Name)) > 0 {
		a.protection.clearDetached(pv.UID)
		return nil
	}
	if remaining := a.FinalizerDelay - a.protection.detachedFor(pv.UID); remaining > 0 && pv.DeletionTimestamp == nil {
		return controller.After(remaining)
	}
	a.protection.setRemoved(pv.UID, true)
	err = a.patchVolume(ctx, pv, object{"$deleteFromPrimitiveList/finalizers": []string{a.finalizer}})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	a.protection.clearDetached(pv.UID)
	return nil
}

func (a *attacher) patchVolume(ctx context.Context, pv *corev1.PersistentVolume, metadata object) error {
	metadata["uid"] = pv.UID
	text, err := json.Marshal(object{"metadata": metadata})
	if err == nil {
		_, err = a.Client.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("patch finalizers of PersistentVolume %q: %w", pv.Name, err)
	}
	return nil
}

// protectedKeys returns the PersistentVolumes that have the finalizer.
func (a *attacher) protectedKeys(object any) []controller.Key {
	pv, ok := object.(*corev1.PersistentVolume)
	if !ok || !a.isOwnVolume(pv) || !a.hasFinalizer(pv.Finalizers) {
		return nil
	}
	return []controller.Key{{Name: pv.Name}}
}

func protectionChanged(old, new any) bool {
	before, after := old.(*corev1.PersistentVolume), new.(*corev1.PersistentVolume)
	return len(before.Finalizers) != len(after.Finalizers) || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}

func (p *protection) isRemoved(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.removed[uid]
}

func (p *protection) setRemoved(uid types.UID, removed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.removed == nil {
		p.removed = map[types.UID]bool{}
	}
	if removed {
		p.removed[uid] = true
		return
	}
	delete(p.removed, uid)
}

// detachedFor returns how long this process has seen the PersistentVolume detached.
func (p *protection) detachedFor(uid types.UID) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.detachedSince == nil {
		p.detachedSince = map[types.UID]time.Time{}
	}
	since, ok := p.detachedSince[uid]
	if !ok {
		since = time.Now()
		p.detachedSince[uid] = since
	}
	return time.Since(since)
}

func (p *protection) clearDetached(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.detachedSince, uid)
}
