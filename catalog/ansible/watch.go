package ansible

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/tools/cache"
)

// feed lists and watches the stored objects from which a view derives its objects.
type feed[T any] struct {
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
	selector string
	derive   func(context.Context, runtime.Object) ([]T, error)
	// identify returns the name of the view's object for a stored object, or "". It is nil if a
	// view can derive several objects from one stored object.
	identify func(runtime.Object) string
}

// recordFeed returns the feed of the objects that are derived from records.
func recordFeed[T any](b *broker, derive func(*record) []T) feed[T] {
	secrets := b.kube.CoreV1().Secrets(namespace)
	return feed[T]{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return secrets.List(ctx, options)
		},
		watch: secrets.Watch, selector: projectLabel,
		derive: func(_ context.Context, stored runtime.Object) ([]T, error) {
			rec, err := decodeSecret(stored.(*corev1.Secret))
			if err != nil {
				return nil, err
			}
			return derive(rec), nil
		},
	}
}

// follower contains the current objects of a feed and receives the feed's changes.
type follower[T any] struct {
	changes watch.Interface
	// derived maps the name of each stored object to the view's objects that are derived from it.
	derived map[cache.ObjectName][]T
	version string // resource version of derived
}

// follow lists the objects in the feed. version is the resource version to list, or "" for the
// current version.
func (v *view[T, P]) follow(ctx context.Context, version string, options *internalversion.ListOptions) (*follower[T], error) {
	selected := metav1.ListOptions{LabelSelector: v.feed.selector, ResourceVersion: version}
	if version != "" {
		selected.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	}
	list, err := v.feed.list(ctx, selected)
	if err != nil {
		return nil, err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	result := &follower[T]{derived: map[cache.ObjectName][]T{}, version: accessor.GetResourceVersion()}
	return result, meta.EachListItem(list, func(stored runtime.Object) error {
		object, err := meta.Accessor(stored)
		if err != nil {
			return err
		}
		result.derived[cache.MetaObjectToName(object)], err = v.selected(ctx, stored, options)
		return err
	})
}

// Watch returns a stream of changes to the objects that the options select. The objects have the
// resource versions of the stored objects that they are derived from.
func (v *view[T, P]) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	if options == nil {
		options = &internalversion.ListOptions{}
	}
	version := options.ResourceVersion
	initial := options.SendInitialEvents != nil && *options.SendInitialEvents || version == "" || version == "0"
	if initial {
		version = ""
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{cancel: cancel, events: make(chan watch.Event), done: make(chan struct{})}
	f, err := v.follow(ctx, version, options)
	if err == nil {
		f.changes, err = v.feed.watch(ctx, metav1.ListOptions{LabelSelector: v.feed.selector, ResourceVersion: f.version})
	}
	if err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(w.done)
		defer close(w.events)
		v.run(ctx, w, f, options, initial)
	}()
	return w, nil
}

// watcher is a watch of a view.
type watcher struct {
	cancel context.CancelFunc
	events chan watch.Event
	done   chan struct{}
}

// Stop ends the watch.
func (w *watcher) Stop() {
	w.cancel()
	<-w.done
}

// ResultChan returns the events.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

// send sends an event. It returns false if the watch has been stopped.
func (w *watcher) send(ctx context.Context, kind watch.EventType, object runtime.Object) bool {
	select {
	case w.events <- watch.Event{Type: kind, Object: object}:
		return true
	case <-ctx.Done():
		return false
	}
}

// run sends the events of a watch until the watch is stopped or the feed's own watch ends.
func (v *view[T, P]) run(ctx context.Context, w *watcher, f *follower[T], options *internalversion.ListOptions, initial bool) {
	defer w.cancel()
	defer f.changes.Stop()
	for _, objects := range f.derived {
		for i := range objects {
			if initial && !w.send(ctx, watch.Added, P(&objects[i]).DeepCopyObject()) {
				return
			}
		}
	}
	if initial && options.SendInitialEvents != nil && options.AllowWatchBookmarks {
		bookmark := P(new(T))
		bookmark.SetResourceVersion(f.version)
		bookmark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		if !w.send(ctx, watch.Bookmark, bookmark) {
			return
		}
	}
	for {
		select {
		case event, ok := <-f.changes.ResultChan():
			if !ok || !v.forward(ctx, w, f, event, options) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// forward sends the events for a change to a stored object. It returns false at the end of the
// watch.
func (v *view[T, P]) forward(ctx context.Context, w *watcher, f *follower[T], event watch.Event, options *internalversion.ListOptions) bool {
	stored, err := meta.Accessor(event.Object)
	if event.Type == watch.Error || err != nil {
		w.send(ctx, watch.Error, event.Object)
		return false
	}
	key := cache.MetaObjectToName(stored)
	previous := f.derived[key]
	delete(f.derived, key)
	if event.Type == watch.Deleted {
		// The image of the deleted stream might have been deleted earlier, without an event. In
		// this case, a client might still have the object in its cache.
		if len(previous) == 0 && hasObjects(ctx) && v.feed.identify != nil && v.feed.identify(event.Object) != "" {
			object := P(new(T))
			object.SetNamespace(namespace)
			object.SetName(v.feed.identify(event.Object))
			previous = []T{*object}
		}
	} else {
		objects, err := v.selected(ctx, event.Object, options)
		if err != nil {
			w.send(ctx, watch.Error, responsewriters.ErrorToAPIStatus(err))
			return false
		}
		f.derived[key] = objects
	}
	current := map[string]bool{}
	for i := range f.derived[key] {
		object := P(&f.derived[key][i])
		current[object.GetName()] = true
		kind := watch.Added
		if contains[T, P](previous, object.GetName()) {
			kind = watch.Modified
		}
		if !w.send(ctx, kind, object.DeepCopyObject()) {
			return false
		}
	}
	for i := range previous {
		object := P(&previous[i])
		object.SetResourceVersion(stored.GetResourceVersion())
		if !current[object.GetName()] && !w.send(ctx, watch.Deleted, object) {
			return false
		}
	}
	return true
}

func contains[T any, P object[T]](objects []T, name string) bool {
	for i := range objects {
		if P(&objects[i]).GetName() == name {
			return true
		}
	}
	return false
}
