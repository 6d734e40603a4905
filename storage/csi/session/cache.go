package session

import (
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// Index adds an index to a shared informer. The controllers of multiple drivers can request the
// same index.
func (s *Session) Index(informer cache.SharedIndexInformer, name string, keys func(object any) []string) error {
	if _, ok := informer.GetIndexer().GetIndexers()[name]; ok {
		return nil
	}
	err := informer.AddIndexers(cache.Indexers{name: func(object any) ([]string, error) { return keys(object), nil }})
	if _, ok := informer.GetIndexer().GetIndexers()[name]; ok {
		return nil // another driver's controllers might have added it
	}
	if err != nil {
		return fmt.Errorf("index objects by %s: %w", name, err)
	}
	return nil
}

// byVolume is the index of VolumeAttachments by PersistentVolume.
const byVolume = "persistentVolume"

// IndexAttachments adds the index that AttachmentsOf uses.
func (s *Session) IndexAttachments() error {
	return s.Index(s.Informers.Storage().V1().VolumeAttachments().Informer(), byVolume, AttachmentVolume)
}

// AttachmentsOf returns the cached VolumeAttachments of a PersistentVolume, for any attacher.
// IndexAttachments must be called first.
func (s *Session) AttachmentsOf(volume string) (result []*storagev1.VolumeAttachment) {
	objects, _ := s.Informers.Storage().V1().VolumeAttachments().Informer().GetIndexer().ByIndex(byVolume, volume)
	for _, object := range objects {
		if va, ok := object.(*storagev1.VolumeAttachment); ok {
			result = append(result, va)
		}
	}
	return result
}

// AttachmentVolume returns the name of a VolumeAttachment's PersistentVolume, or nil for an inline
// volume.
func AttachmentVolume(object any) []string {
	va, ok := object.(*storagev1.VolumeAttachment)
	if !ok || va.Spec.Source.PersistentVolumeName == nil {
		return nil
	}
	return []string{*va.Spec.Source.PersistentVolumeName}
}

// VolumeKeys maps one of the driver's VolumeAttachments to the key of its PersistentVolume.
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

// IgnoreUpdates is a change filter for watches that react only to the creation and deletion of
// objects.
func IgnoreUpdates(_, _ any) bool { return false }

// Feature returns the controllers of one feature for a driver, or none if the driver does not
// support the feature.
type Feature func(*Session) ([]controller.Controller, error)
