package controller

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Live evaluates the result of a lister. It returns the object, and reports whether the object
// exists and is not being deleted. A not-found error is not returned.
func Live[T metav1.Object](object T, err error) (T, bool, error) {
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return object, false, err
	}
	return object, object.GetDeletionTimestamp() == nil, nil
}

// WatchReferences returns a Watch that enqueues the objects that reference a changed object. It
// adds an index to referrers, the informer for the referencing objects. references returns the
// names of the objects that an object references, as namespace/name.
func WatchReferences(
	referrers cache.SharedIndexInformer, index string, references func(object any) []string, objects cache.SharedIndexInformer,
) (Watch, error) {
	err := referrers.AddIndexers(cache.Indexers{index: func(object any) ([]string, error) { return references(object), nil }})
	if err != nil {
		return Watch{}, fmt.Errorf("add index %q: %w", index, err)
	}
	return Watch{Informer: objects, Keys: func(object any) (keys []Key) {
		changed, err := cache.ObjectToName(object)
		if err != nil {
			return nil
		}
		// This cannot fail, because the index exists.
		matches, _ := referrers.GetIndexer().ByIndex(index, changed.String())
		for _, match := range matches {
			if key, err := cache.ObjectToName(match); err == nil {
				keys = append(keys, key)
			}
		}
		return keys
	}}, nil
}
