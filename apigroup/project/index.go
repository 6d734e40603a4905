package project

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// subject is a user, as in `u:joe`, or a group, as in `g:team`. A service account is a user.
type subject string

func userSubject(name string) subject  { return subject("u:" + name) }
func groupSubject(name string) subject { return subject("g:" + name) }

// subjectsOf returns the subjects that apply to a user: the user and the user's groups.
func subjectsOf(u user.Info) []subject {
	subjects := []subject{userSubject(u.GetName())}
	for _, group := range u.GetGroups() {
		subjects = append(subjects, groupSubject(group))
	}
	return subjects
}

// viewers is the set of subjects that are allowed to see one namespace.
type viewers map[subject]struct{}

func (v viewers) any(subjects []subject) bool {
	return slices.ContainsFunc(subjects, func(s subject) bool { _, ok := v[s]; return ok })
}

// index maps subjects to the namespaces that they are allowed to see. The cost of a list therefore
// depends on the number of namespaces visible to the user, not on the total number of namespaces.
// The index also sends changes to watchers. Each change has a higher version than the previous
// change, and at least the resourceVersion of the object that caused it. Clients can therefore use
// the version as a resourceVersion.
type index struct {
	mutex             sync.Mutex
	namespaces        map[string]*entry
	bySubject         map[subject]map[string]struct{}
	clock             uint64
	history           []change // the latest changes, oldest first
	truncated         uint64   // the version of the newest change that is no longer in history
	watchers          map[*watcher]struct{}
	watchersBySubject map[subject]map[*watcher]struct{} // keyed by the users' subjects
	allSeeing         map[*watcher]struct{}
}

type entry struct {
	namespace *corev1.Namespace
	viewers   viewers
}

// change is a change to a namespace. before is nil for a new namespace, and after is nil for a
// deleted namespace.
type change struct {
	version       uint64
	before, after *entry
}

// historySize is the number of past changes that are kept. A watch can start at any of them.
const historySize = 4096

func newIndex() *index {
	return &index{
		namespaces: map[string]*entry{}, bySubject: map[subject]map[string]struct{}{},
		watchers: map[*watcher]struct{}{}, watchersBySubject: map[subject]map[*watcher]struct{}{}, allSeeing: map[*watcher]struct{}{},
	}
}

// set records a namespace and its viewers. version is the resourceVersion of the object that caused
// the change.
func (i *index) set(namespace *corev1.Namespace, viewers viewers, version uint64) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	before := i.namespaces[namespace.Name]
	if before != nil && before.namespace.ResourceVersion == namespace.ResourceVersion && maps.Equal(before.viewers, viewers) {
		return
	}
	after := &entry{namespace, viewers}
	i.namespaces[namespace.Name] = after
	i.file(namespace.Name, before, after)
	i.record(before, after, version)
}

// remove records that a namespace was deleted.
func (i *index) remove(name string, version uint64) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	before := i.namespaces[name]
	if before == nil {
		return
	}
	delete(i.namespaces, name)
	i.file(name, before, nil)
	i.record(before, nil, version)
}

// file updates the sets of namespaces that subjects are allowed to see.
func (i *index) file(name string, before, after *entry) {
	if before != nil {
		for s := range before.viewers {
			delete(i.bySubject[s], name)
			if len(i.bySubject[s]) == 0 {
				delete(i.bySubject, s)
			}
		}
	}
	if after != nil {
		for s := range after.viewers {
			if i.bySubject[s] == nil {
				i.bySubject[s] = map[string]struct{}{}
			}
			i.bySubject[s][name] = struct{}{}
		}
	}
}

// record advances the clock and sends the change to the watchers of the affected users.
func (i *index) record(before, after *entry, version uint64) {
	i.clock = max(i.clock+1, version)
	next := change{i.clock, before, after}
	if len(i.history) == historySize {
		i.truncated = i.history[0].version
		i.history = slices.Delete(i.history, 0, 1)
	}
	i.history = append(i.history, next)
	affected := map[*watcher]struct{}{}
	for _, side := range []*entry{before, after} {
		if side == nil {
			continue
		}
		for s := range side.viewers {
			for w := range i.watchersBySubject[s] {
				affected[w] = struct{}{}
			}
		}
	}
	maps.Copy(affected, i.allSeeing)
	for w := range affected {
		if !w.send(next) {
			i.drop(w)
		}
	}
}

// reset clears the history, so that it starts at the current state. It must be called before
// clients can watch.
func (i *index) reset() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.history, i.truncated = nil, i.clock
}

// list returns the namespaces in a view, sorted by name, and the version of the list.
func (i *index) list(v view) ([]*corev1.Namespace, uint64) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.visible(v), i.clock
}

func (i *index) visible(v view) []*corev1.Namespace {
	visible := map[string]*corev1.Namespace{}
	if v.all {
		for name, entry := range i.namespaces {
			if v.allows(entry) {
				visible[name] = entry.namespace
			}
		}
	} else {
		for _, s := range v.subjects {
			for name := range i.bySubject[s] {
				if entry := i.namespaces[name]; v.allows(entry) {
					visible[name] = entry.namespace
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(visible), func(a, b *corev1.Namespace) int { return cmp.Compare(a.Name, b.Name) })
}

// view defines the namespaces that are visible to the user of a request.
type view struct {
	// all means that the user is allowed to see every namespace.
	all      bool
	subjects []subject
	// scopes restricts the namespaces visible to a token with scopes. nil means no restriction.
	scopes func(namespace string) bool
	// match applies the request's selectors. nil selects every namespace.
	match func(*corev1.Namespace) bool
}

// allows reports whether the view contains a namespace.
func (v view) allows(e *entry) bool {
	return e != nil && (v.all || e.viewers.any(v.subjects)) &&
		(v.scopes == nil || v.scopes(e.namespace.Name)) && (v.match == nil || v.match(e.namespace))
}
