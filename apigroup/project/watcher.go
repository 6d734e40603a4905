package project

import (
	"fmt"
	"strconv"

	projectv1 "github.com/openshift/api/project/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher is one user's watch of projects.
type watcher struct {
	view   view
	events chan watch.Event
	index  *index
}

var _ watch.Interface = &watcher{}

// watchBuffer is how many events a client may be behind; one that is further behind is cut off and lists again.
const watchBuffer = 256

// watch begins a watch. With initial the projects that exist come first, and bookmark ends them; otherwise what has changed
// since the version comes first. A version that is too old is an error of reason Expired.
func (i *index) watch(v view, version uint64, initial, bookmark bool) (*watcher, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if !initial && version < i.forgotten {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, i.forgotten))
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
		for _, step := range i.history {
			if event, ok := w.event(step); ok && step.version > version {
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
		if i.concerned[s] == nil {
			i.concerned[s] = map[*watcher]struct{}{}
		}
		i.concerned[s][w] = struct{}{}
	}
	return w, nil
}

// event is what a change is to the watcher's user: a project comes, changes or goes, or nothing.
func (w *watcher) event(step change) (watch.Event, bool) {
	before, after := w.view.allows(step.before), w.view.allows(step.after)
	switch {
	case before && !after:
		gone := fromNamespace(step.before.namespace)
		gone.ResourceVersion = strconv.FormatUint(step.version, 10)
		return watch.Event{Type: watch.Deleted, Object: gone}, true
	case !before && after:
		return watch.Event{Type: watch.Added, Object: fromNamespace(step.after.namespace)}, true
	case before && after && step.before.namespace.ResourceVersion != step.after.namespace.ResourceVersion:
		return watch.Event{Type: watch.Modified, Object: fromNamespace(step.after.namespace)}, true
	}
	return watch.Event{}, false
}

// tell passes a change on; false says that the client is too far behind.
func (w *watcher) tell(step change) bool {
	event, ok := w.event(step)
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

// ResultChan gives the events.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch.
func (w *watcher) Stop() {
	w.index.mutex.Lock()
	defer w.index.mutex.Unlock()
	w.index.drop(w)
}

// drop forgets a watcher and ends its events.
func (i *index) drop(w *watcher) {
	if _, known := i.watchers[w]; !known {
		return
	}
	delete(i.watchers, w)
	delete(i.allSeeing, w)
	for _, s := range w.view.subjects {
		delete(i.concerned[s], w)
		if len(i.concerned[s]) == 0 {
			delete(i.concerned, s)
		}
	}
	close(w.events)
}
