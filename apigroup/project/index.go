package project

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// subject is a user, `u:joe`, or a group, `g:team`. A service account counts as the user that it is.
type subject string

func userSubject(name string) subject  { return subject("u:" + name) }
func groupSubject(name string) subject { return subject("g:" + name) }

// subjectsOf are what a user is known by.
func subjectsOf(who user.Info) []subject {
	subjects := []subject{userSubject(who.GetName())}
	for _, group := range who.GetGroups() {
		subjects = append(subjects, groupSubject(group))
	}
	return subjects
}

// viewers are the subjects that may see one namespace.
type viewers map[subject]struct{}

func (v viewers) any(subjects []subject) bool {
	return slices.ContainsFunc(subjects, func(s subject) bool { _, ok := v[s]; return ok })
}

// index knows which namespaces each subject may see, so that a list costs what a user may see and not what exists, and tells
// watchers what changes for them. It has its own clock: every change gets a version above the one before, which starts from the
// store's versions and can be given to clients as a resourceVersion.
type index struct {
	mutex      sync.Mutex
	namespaces map[string]*entry
	bySubject  map[subject]map[string]struct{}
	clock      uint64
	history    []change // the last ones, oldest first
	forgotten  uint64   // the version of the newest change that is no longer in history
	watchers   map[*watcher]struct{}
	concerned  map[subject]map[*watcher]struct{} // watchers by what their users are known by
	allSeeing  map[*watcher]struct{}
}

type entry struct {
	namespace *corev1.Namespace
	viewers   viewers
}

// change is one step of a namespace: from before to after, either of which may be nothing.
type change struct {
	version       uint64
	before, after *entry
}

// historySize bounds the changes that a watch can begin in.
const historySize = 4096

func newIndex() *index {
	return &index{
		namespaces: map[string]*entry{}, bySubject: map[subject]map[string]struct{}{},
		watchers: map[*watcher]struct{}{}, concerned: map[subject]map[*watcher]struct{}{}, allSeeing: map[*watcher]struct{}{},
	}
}

// set records a namespace and who may see it. version is the resourceVersion of the object that caused the change.
func (i *index) set(namespace *corev1.Namespace, seenBy viewers, version uint64) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	before := i.namespaces[namespace.Name]
	if before != nil && before.namespace.ResourceVersion == namespace.ResourceVersion && maps.Equal(before.viewers, seenBy) {
		return
	}
	after := &entry{namespace, seenBy}
	i.namespaces[namespace.Name] = after
	i.file(namespace.Name, before, after)
	i.record(before, after, version)
}

// remove records that a namespace is gone.
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

// file keeps the namespaces of each subject.
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

// record advances the clock and tells those watchers whose users the change may concern.
func (i *index) record(before, after *entry, version uint64) {
	i.clock = max(i.clock+1, version)
	step := change{i.clock, before, after}
	if len(i.history) == historySize {
		i.forgotten = i.history[0].version
		i.history = slices.Delete(i.history, 0, 1)
	}
	i.history = append(i.history, step)
	told := map[*watcher]struct{}{}
	for _, side := range []*entry{before, after} {
		if side == nil {
			continue
		}
		for s := range side.viewers {
			for w := range i.concerned[s] {
				told[w] = struct{}{}
			}
		}
	}
	maps.Copy(told, i.allSeeing)
	for w := range told {
		if !w.tell(step) {
			i.drop(w)
		}
	}
}

// settle makes what was recorded so far the beginning: nobody can have seen anything before.
func (i *index) settle() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.history, i.forgotten = nil, i.clock
}

// list are the namespaces that a view shows, by name, and the version of the list.
func (i *index) list(v view) ([]*corev1.Namespace, uint64) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.visible(v), i.clock
}

func (i *index) visible(v view) []*corev1.Namespace {
	found := map[string]*corev1.Namespace{}
	if v.all {
		for name, known := range i.namespaces {
			if v.allows(known) {
				found[name] = known.namespace
			}
		}
	} else {
		for _, s := range v.subjects {
			for name := range i.bySubject[s] {
				if known := i.namespaces[name]; v.allows(known) {
					found[name] = known.namespace
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *corev1.Namespace) int { return cmp.Compare(a.Name, b.Name) })
}

// view is what one user may see.
type view struct {
	// all says that the user may see every namespace.
	all      bool
	subjects []subject
	// scopes limits the namespaces of a token with scopes; nil does not.
	scopes func(namespace string) bool
	// match is the selector of the request; nil selects everything.
	match func(*corev1.Namespace) bool
}

// allows tells whether the view shows a namespace.
func (v view) allows(e *entry) bool {
	return e != nil && (v.all || e.viewers.any(v.subjects)) &&
		(v.scopes == nil || v.scopes(e.namespace.Name)) && (v.match == nil || v.match(e.namespace))
}
