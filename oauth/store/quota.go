package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// maxPerUser is the maximum number of objects of one resource that a user can have in the
	// store.
	maxPerUser = 1000
	// countInterval is the number of objects that a user can create between two counts. A count
	// reads all objects of the resource. Before the next count, each API server can exceed the
	// maximum by this number.
	countInterval = 100
)

// Quota limits the number of objects of one resource that each user has in the store. It is
// necessary because a script can log in repeatedly, and ResourceQuota does not count cluster-scoped
// objects.
type Quota[T interface {
	runtime.Object
	metav1.Object
}] struct {
	Objects Objects[T]

	mu sync.Mutex
	// added is the number of objects that each user has created since the last count.
	added map[string]int
}

// Add must be called before an object is created for a user. If the user has too many objects, Add
// deletes the oldest objects. The resource must support the field selector userName.
func (q *Quota[T]) Add(ctx context.Context, user string) error {
	if !q.isDue(user) {
		return nil
	}
	objects, err := q.Objects.Where(ctx, "userName", user)
	if err != nil {
		return fmt.Errorf("count objects of user %q: %w", user, err)
	}
	excess := len(objects) + 1 - maxPerUser
	if excess <= 0 {
		return nil
	}
	slices.SortFunc(objects, func(a, b T) int {
		if order := a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time); order != 0 {
			return order
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	for _, object := range objects[:excess] {
		if err := q.Objects.Delete(ctx, object.GetName()); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete oldest object of user %q: %w", user, err)
		}
	}
	return nil
}

// isDue counts a new object for a user, and reports whether the user's objects must be counted in
// the store.
func (q *Quota[T]) isDue(user string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.added == nil {
		q.added = map[string]int{}
	}
	q.added[user]++
	if q.added[user] < countInterval {
		return false
	}
	delete(q.added, user)
	return true
}
