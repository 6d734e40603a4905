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
	"github.com/slipway-platform/slipway/internal/keylock"
)

// protection tracks which PersistentVolumes have the finalizer, because the cache might be stale.
type protection struct {
	locks keylock.Locks // by PersistentVolume; held while the finalizer is added or removed

	mu      sync.Mutex
	volumes map[string]protectedVolume // by name, until the PersistentVolume is deleted
}

// protectedVolume is the state of a PersistentVolume that the cache might not contain yet.
type protectedVolume struct {
	uid           types.UID
	removed       bool      // the finalizer was removed and not added again
	detachedSince time.Time // zero if the PersistentVolume is attached
}

// protect adds the finalizer to a PersistentVolume before the volume is attached. Without the
// finalizer, the PersistentVolume could be deleted before the volume is detached, and detaching
// requires the PersistentVolume.
func (a *attacher) protect(ctx context.Context, pv *corev1.PersistentVolume) error {
	defer a.protection.locks.Lock(pv.Name)()
	if a.hasFinalizer(pv.Finalizers) && !a.protection.isRemoved(pv) {
		return nil
	}
	if err := a.patchVolume(ctx, pv, object{"finalizers": []string{a.finalizer}}); err != nil {
		return err
	}
	a.protection.setRemoved(pv, false)
	return nil
}

// reconcileProtection removes the finalizer from a detached PersistentVolume: immediately if the
// PersistentVolume is being deleted, otherwise after FinalizerDelay.
func (a *attacher) reconcileProtection(ctx context.Context, key controller.Key) error {
	pv, err := a.volumes.Get(key.Name)
	if apierrors.IsNotFound(err) {
		a.protection.forget(key.Name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read PersistentVolume %q: %w", key.Name, err)
	}
	if !a.isOwnVolume(pv) || !a.hasFinalizer(pv.Finalizers) {
		a.protection.clearDetached(pv)
		return nil
	}
	defer a.protection.locks.Lock(pv.Name)()
	if len(a.AttachmentsOf(pv.Name)) > 0 {
		a.protection.clearDetached(pv)
		return nil
	}
	if remaining := a.FinalizerDelay - a.protection.detachedFor(pv); remaining > 0 && pv.DeletionTimestamp == nil {
		return controller.RequeueAfter(remaining)
	}
	a.protection.setRemoved(pv, true)
	err = a.patchVolume(ctx, pv, object{"$deleteFromPrimitiveList/finalizers": []string{a.finalizer}})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	a.protection.clearDetached(pv)
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

// protectedKeys returns the keys of PersistentVolumes that have or had the finalizer.
func (a *attacher) protectedKeys(object any) []controller.Key {
	pv, ok := object.(*corev1.PersistentVolume)
	if !ok || !a.isOwnVolume(pv) || !a.hasFinalizer(pv.Finalizers) && !a.protection.has(pv.Name) {
		return nil
	}
	return []controller.Key{{Name: pv.Name}}
}

func protectionChanged(old, new any) bool {
	before, after := old.(*corev1.PersistentVolume), new.(*corev1.PersistentVolume)
	return len(before.Finalizers) != len(after.Finalizers) || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}

func (p *protection) isRemoved(pv *corev1.PersistentVolume) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.volumes[pv.Name]
	return v.uid == pv.UID && v.removed
}

func (p *protection) setRemoved(pv *corev1.PersistentVolume, removed bool) {
	p.update(pv, func(v *protectedVolume) { v.removed = removed })
}

// detachedFor returns how long the PersistentVolume has been detached, as observed by this process.
func (p *protection) detachedFor(pv *corev1.PersistentVolume) (duration time.Duration) {
	p.update(pv, func(v *protectedVolume) {
		if v.detachedSince.IsZero() {
			v.detachedSince = time.Now()
		}
		duration = time.Since(v.detachedSince)
	})
	return duration
}

func (p *protection) clearDetached(pv *corev1.PersistentVolume) {
	p.update(pv, func(v *protectedVolume) { v.detachedSince = time.Time{} })
}

// update changes a PersistentVolume's entry. It drops the entry of a deleted PersistentVolume with
// the same name, and does not store an empty entry.
func (p *protection) update(pv *corev1.PersistentVolume, change func(*protectedVolume)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.volumes[pv.Name]
	if v.uid != pv.UID {
		v = protectedVolume{uid: pv.UID}
	}
	change(&v)
	if !v.removed && v.detachedSince.IsZero() {
		delete(p.volumes, pv.Name)
		return
	}
	if p.volumes == nil {
		p.volumes = map[string]protectedVolume{}
	}
	p.volumes[pv.Name] = v
}

// forget drops the entry of a deleted PersistentVolume.
func (p *protection) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.volumes, name)
}

func (p *protection) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.volumes[name]
	return ok
}
