package project

import (
	"fmt"
	"strconv"

	projectv1 "github.com/openshift/api/project/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher is a single user's watch of projects.
type watcher struct {
	view   view
	events chan watch.Event
	index  *index
}

var _ watch.Interface = &watcher{}

// watchBuffer is the maximum number of events that can wait to be read by a client. If this number
// is exceeded, the server closes the watch, and the client must list again.
const watchBuffer = 256

// watch starts a watch. If initial is set, the watch first sends all existing projects and then, if
// bookmark is set, a bookmark. Otherwise, it first sends the changes since the given version. If
// the version is too old, watch returns an error whose reason is Expired. The same applies to a
// version that is newer than this server's index, for example because another master returned it.
func (i *index) watch(v view, version uint64, initial, bookmark bool) (*watcher, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if !initial && version < i.truncated {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, i.truncated))
	}
	if !initial && version > i.clock {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too large resource version: %d, current: %d", version, i.clock))
	}
	w := &watcher{view: v, index: i}
	var first []watch.Event
	if initial {
		for _, namespace := range i.visible(v) {
			first = append(first, watch.Event{Type: watch.Added, Object: fromNamespace(namespace)})
		}
		if bookmark {
			first = append(first, watch.Event{Type: watch.Bookmark, Object: &projectv1.Project{ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: strconv.FormatUint(i.clock, 10),
				Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
			}}})
		}
	} else {
		for _, c := range i.history {
			if event, ok := w.event(c); ok && c.version > version {
				first = append(first, event)
			}
		}
	}
	w.events = make(chan watch.Event, len(first)+watchBuffer)
	for _, event := range first {
		w.events <- event
	}
	i.watchers[w] = struct{}{}
	if v.all {
		i.allSeeing[w] = struct{}{}
		return w, nil
	}
	for _, s := range v.subjects {
		if i.watchersBySubject[s] == nil {
			i.watchersBySubject[s] = map[*watcher]struct{}{}
		}
		i.watchersBySubject[s][w] = struct{}{}
	}
	return w, nil
}

// event converts a change to an event for the watcher's user: the project appears, changes or
// disappears. It returns false if the change is not visible to the user.
func (w *watcher) event(c change) (watch.Event, bool) {
	before, after := w.view.allows(c.before), w.view.allows(c.after)
	switch {
	case before && !after:
		deleted := fromNamespace(c.before.namespace)
		deleted.ResourceVersion = strconv.FormatUint(c.version, 10)
		return watch.Event{Type: watch.Deleted, Object: deleted}, true
	case !before && after:
		return watch.Event{Type: watch.Added, Object: fromNamespace(c.after.namespace)}, true
	case before && after && c.before.namespace.ResourceVersion != c.after.namespace.ResourceVersion:
		return watch.Event{Type: watch.Modified, Object: fromNamespace(c.after.namespace)}, true
	}
	return watch.Event{}, false
}

// send sends a change. It returns false if the client lags too far behind.
func (w *watcher) send(c change) bool {
	event, ok := w.event(c)
	if !ok {
		return true
	}
	select {
	case w.events <- event:
		return true
	default:
		return false
	}
}

// ResultChan returns the event channel.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

// Stop stops the watch.
func (w *watcher) Stop() {
	w.index.mutex.Lock()
	defer w.index.mutex.Unlock()
	w.index.drop(w)
}

// drop removes a watcher and closes its channel.
func (i *index) drop(w *watcher) {
	if _, exists := i.watchers[w]; !exists {
		return
	}
	delete(i.watchers, w)
	delete(i.allSeeing, w)
	for _, s := range w.view.subjects {
		delete(i.watchersBySubject[s], w)
		if len(i.watchersBySubject[s]) == 0 {
			delete(i.watchersBySubject, s)
		}
	}
	close(w.events)
}
