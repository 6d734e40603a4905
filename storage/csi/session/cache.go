package session

import (
	"fmt"
	"sync"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// Index makes a shared informer find objects by the values that keys gives for them. Loops of several drivers may ask for the same index.
func (s *Session) Index(informer cache.SharedIndexInformer, name string, keys func(object any) []string) error {
	if _, there := informer.GetIndexer().GetIndexers()[name]; there {
		return nil
	}
	err := informer.AddIndexers(cache.Indexers{name: func(object any) ([]string, error) { return keys(object), nil }})
	if _, there := informer.GetIndexer().GetIndexers()[name]; there {
		return nil // perhaps another driver's loops were quicker
	}
	if err != nil {
		return fmt.Errorf("index objects by %s: %w", name, err)
	}
	return nil
}

// byVolume is the index of VolumeAttachments by their PersistentVolume.
const byVolume = "persistentVolume"

// IndexAttachments makes AttachmentsOf answer.
func (s *Session) IndexAttachments() error {
	return s.Index(s.Informers.Storage().V1().VolumeAttachments().Informer(), byVolume, AttachmentVolume)
}

// AttachmentsOf are the VolumeAttachments of a PersistentVolume, whoever attaches it, as far as the cache knows. IndexAttachments must have been called.
func (s *Session) AttachmentsOf(volume string) (found []*storagev1.VolumeAttachment) {
	objects, _ := s.Informers.Storage().V1().VolumeAttachments().Informer().GetIndexer().ByIndex(byVolume, volume)
	for _, object := range objects {
		if va, ok := object.(*storagev1.VolumeAttachment); ok {
			found = append(found, va)
		}
	}
	return found
}

// AttachmentVolume is the name of the PersistentVolume of a VolumeAttachment; none for one with a volume of its own.
func AttachmentVolume(object any) []string {
	va, ok := object.(*storagev1.VolumeAttachment)
	if !ok || va.Spec.Source.PersistentVolumeName == nil {
		return nil
	}
	return []string{*va.Spec.Source.PersistentVolumeName}
}

// VolumeKeys is the PersistentVolume of a VolumeAttachment of the driver, as the key of a loop.
func (s *Session) VolumeKeys(object any) (keys []controller.Key) {
	va, ok := object.(*storagev1.VolumeAttachment)
	if !ok || va.Spec.Attacher != s.Description.Name {
		return nil
	}
	for _, name := range AttachmentVolume(va) {
		keys = append(keys, controller.Key{Name: name})
	}
	return keys
}

// Unchanged is for watches that wake a loop only when objects come and go.
func Unchanged(_, _ any) bool { return false }

// Locks are one lock for each key, for what loops with different keys must not do at once. The zero value is ready.
type Locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	sync.Mutex
	users int
}

// Lock waits for the lock of a key and returns what gives it back.
func (l *Locks) Lock(key string) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*lock{}
	}
	k := l.held[key]
	if k == nil {
		k = &lock{}
		l.held[key] = k
	}
	k.users++
	l.mu.Unlock()
	k.Lock()
	return func() {
		k.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(l.held, key)
		}
	}
}

// Feature makes the loops of one concern for a driver that is served. A driver that lacks what the concern needs gets none.
type Feature func(*Session) ([]controller.Loop, error)
