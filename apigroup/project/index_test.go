package project

import (
	"fmt"
	"slices"
	"testing"

	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
)

func ns(name string, version uint64) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: fmt.Sprint(version)}}
}

func seenBy(subjects ...subject) viewers {
	v := viewers{}
	for _, s := range subjects {
		v[s] = struct{}{}
	}
	return v
}

func visible(i *index, v view) (names []string) {
	list, _ := i.list(v)
	for _, n := range list {
		names = append(names, n.Name)
	}
	return names
}

func alice() view {
	return view{subjects: subjectsOf(&user.DefaultInfo{Name: "alice", Groups: []string{"team"}})}
}

// next returns the next event, such as `ADDED shop`, or "" if there is no event.
func next(t *testing.T, w *watcher) string {
	t.Helper()
	select {
	case event, open := <-w.ResultChan():
		if !open {
			return "closed"
		}
		return fmt.Sprintf("%s %s", event.Type, event.Object.(*projectv1.Project).Name)
	default:
		return ""
	}
}

func TestIndexListsNamespacesOfUserAndGroups(t *testing.T) {
	i := newIndex()
	i.set(ns("b", 1), seenBy(userSubject("alice")), 1)
	i.set(ns("a", 2), seenBy(groupSubject("team")), 2)
	i.set(ns("c", 3), seenBy(userSubject("team"), groupSubject("alice")), 3)
	if got := visible(i, alice()); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("alice sees %v", got)
	}
	if got := visible(i, view{all: true}); len(got) != 3 {
		t.Errorf("the administrator sees %v", got)
	}
	limited := alice()
	limited.scopes = func(name string) bool { return name == "b" }
	if got := visible(i, limited); !slices.Equal(got, []string{"b"}) {
		t.Errorf("a limited token sees %v", got)
	}
	i.remove("b", 4)
	if got := visible(i, alice()); !slices.Equal(got, []string{"a"}) {
		t.Errorf("after the removal alice sees %v", got)
	}
	if len(i.bySubject) != 3 {
		t.Errorf("subjects without a namespace are kept: %v", i.bySubject)
	}
}

func TestWatchSendsChangesOfVisibility(t *testing.T) {
	i := newIndex()
	i.set(ns("a", 1), seenBy(userSubject("alice")), 1)
	_, version := i.list(alice())
	w, err := i.watch(alice(), version, false, false)
	if err != nil {
		t.Fatal(err)
	}
	i.set(ns("b", 2), seenBy(), 2) // alice cannot see it
	// Alice's group is granted access.
	i.set(ns("b", 2), seenBy(groupSubject("team")), 3)
	i.set(ns("b", 4), seenBy(groupSubject("team")), 4)                     // access is unchanged
	i.set(ns("b", 4), seenBy(groupSubject("team"), userSubject("bob")), 5) // bob gains access
	i.set(ns("b", 4), seenBy(userSubject("bob")), 6)                       // alice loses access
	i.remove("a", 7)
	for _, want := range []string{"ADDED b", "MODIFIED b", "DELETED b", "DELETED a", ""} {
		if got := next(t, w); got != want {
			t.Errorf("event %q, want %q", got, want)
		}
	}
	w.Stop()
	if next(t, w) != "closed" || len(i.watchers)+len(i.watchersBySubject) != 0 {
		t.Errorf("a stopped watch is kept: %v", i.watchersBySubject)
	}
}

func TestWatchContinuesFromListVersion(t *testing.T) {
	i := newIndex()
	i.set(ns("a", 1), seenBy(userSubject("alice")), 1)
	_, version := i.list(alice())
	i.set(ns("b", 2), seenBy(userSubject("alice")), 2)
	w, err := i.watch(alice(), version, false, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := next(t, w); got != "ADDED b" {
		t.Errorf("event %q", got)
	}
	w, err = i.watch(alice(), 0, true, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Added, watch.Bookmark} {
		if event := <-w.ResultChan(); event.Type != want {
			t.Errorf("event %s, want %s", event.Type, want)
		}
	}
}

func TestWatchFromTruncatedHistoryExpires(t *testing.T) {
	i := newIndex()
	for version := uint64(1); version < historySize+10; version++ {
		i.set(ns("a", version), seenBy(), version)
	}
	if _, err := i.watch(alice(), 3, false, false); !apierrors.IsResourceExpired(err) {
		t.Errorf("error is %v", err)
	}
	i.reset()
	if _, err := i.watch(alice(), 3, false, false); !apierrors.IsResourceExpired(err) {
		t.Errorf("after the start the error is %v", err)
	}
}

func TestSlowWatchIsClosed(t *testing.T) {
	i := newIndex()
	w, err := i.watch(alice(), 0, true, false)
	if err != nil {
		t.Fatal(err)
	}
	for version := uint64(1); version < watchBuffer+10; version++ {
		i.set(ns("a", version), seenBy(userSubject("alice")), version)
	}
	for range watchBuffer {
		<-w.ResultChan()
	}
	if got := next(t, w); got != "closed" {
		t.Errorf("event %q, want the end of the watch", got)
	}
}

// BenchmarkList measures list requests of a user who is allowed to see 10 of 10,000 projects.
func BenchmarkList(b *testing.B) {
	i := newIndex()
	for n := range uint64(10000) {
		subject := userSubject(fmt.Sprintf("user-%d", n/10))
		if n < 10 {
			subject = userSubject("alice")
		}
		i.set(ns(fmt.Sprintf("project-%d", n), n+1), seenBy(subject), n+1)
	}
	for b.Loop() {
		if list, _ := i.list(alice()); len(list) != 10 {
			b.Fatal(len(list))
		}
	}
}

func TestWatchFromVersionOfAnotherMasterExpires(t *testing.T) {
	i := newIndex()
	i.clock = 5
	if _, err := i.watch(alice(), 6, false, false); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch that could miss changes: %v", err)
	}
	if _, err := i.watch(alice(), 5, false, false); err != nil {
		t.Errorf("a watch from the current version: %v", err)
	}
	if _, err := i.watch(alice(), 6, true, false); err != nil {
		t.Errorf("a watch that sends all projects: %v", err)
	}
}
