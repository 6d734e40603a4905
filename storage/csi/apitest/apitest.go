// Package apitest is for tests of the loops that serve CSI drivers: it gives the fake clientsets of client-go what an API server
// does with resource versions, UIDs, finalizers, preconditions and the status, and ends a process between any two calls that it
// makes, of the API or of a driver.
package apitest

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/testing"
)

// Server stands behind one or several fake clientsets.
type Server struct {
	// Killer decides when the process that calls ends; nil never does.
	Killer *Killer

	mu      sync.Mutex
	counter int
	user    atomic.Bool // a request is not the process's
}

// AsUser makes the requests of do, which the process does not make and which it does not end at. Requests of the process meanwhile
// are none of its either.
func (s *Server) AsUser(do func()) {
	s.user.Store(true)
	defer s.user.Store(false)
	do()
}

func (s *Server) killer() *Killer {
	if s.user.Load() {
		return nil
	}
	return s.Killer
}

// Serve takes the requests of a fake clientset, which keeps the objects in its tracker.
func (s *Server) Serve(fake *testing.Fake, tracker testing.ObjectTracker) {
	fake.PrependReactor("*", "*", func(action testing.Action) (bool, runtime.Object, error) {
		what := action.GetVerb() + " " + action.GetResource().Resource
		if action.GetSubresource() != "" {
			what += "/" + action.GetSubresource()
		}
		switch action.GetVerb() {
		case "create", "update", "patch", "delete":
			object, err := s.write(tracker, action, what)
			return true, object, err
		case "get":
			return s.killer().Dead(), nil, errKilled
		}
		return false, nil, nil // list and watch: the caches of a process that has ended do no harm
	})
}

func (s *Server) write(tracker testing.ObjectTracker, action testing.Action, what string) (runtime.Object, error) {
	before, after := s.killer().step(what)
	if before != nil {
		return nil, before
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	object, err := s.apply(tracker, action)
	if err == nil {
		err = after
	}
	return object, err
}

func (s *Server) apply(tracker testing.ObjectTracker, action testing.Action) (runtime.Object, error) {
	switch action := action.(type) {
	case testing.CreateActionImpl:
		return s.create(tracker, action)
	case testing.UpdateActionImpl:
		return s.update(tracker, action.GetResource(), action.GetNamespace(), action.GetSubresource(), action.GetObject())
	case testing.PatchActionImpl:
		return s.patch(tracker, action)
	case testing.DeleteActionImpl:
		return nil, s.delete(tracker, action)
	}
	return nil, fmt.Errorf("unexpected action %T", action)
}

func (s *Server) create(tracker testing.ObjectTracker, action testing.CreateActionImpl) (runtime.Object, error) {
	object := action.GetObject().DeepCopyObject()
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	s.counter++
	if accessor.GetName() == "" {
		accessor.SetName(accessor.GetGenerateName() + strconv.Itoa(s.counter))
	}
	if accessor.GetNamespace() == "" {
		accessor.SetNamespace(action.GetNamespace())
	}
	accessor.SetUID(types.UID("uid-" + strconv.Itoa(s.counter)))
	accessor.SetCreationTimestamp(metav1.NewTime(time.Now()))
	accessor.SetResourceVersion(strconv.Itoa(s.counter))
	return object, tracker.Create(action.GetResource(), object, action.GetNamespace())
}

func (s *Server) update(tracker testing.ObjectTracker, gvr schema.GroupVersionResource, namespace, subresource string, object runtime.Object) (runtime.Object, error) {
	wanted, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	found, err := tracker.Get(gvr, namespace, wanted.GetName())
	if err != nil {
		return nil, err
	}
	current, err := meta.Accessor(found)
	if err != nil {
		return nil, err
	}
	if version := wanted.GetResourceVersion(); version != "" && version != current.GetResourceVersion() || wanted.GetUID() != "" && wanted.GetUID() != current.GetUID() {
		return nil, apierrors.NewConflict(gvr.GroupResource(), wanted.GetName(), fmt.Errorf("the object has been modified"))
	}
	merged, err := merge(found, object, subresource)
	if err != nil {
		return nil, err
	}
	return merged, s.store(tracker, gvr, namespace, merged)
}

// store keeps an object, or lets it go when it is being deleted and nothing holds it.
func (s *Server) store(tracker testing.ObjectTracker, gvr schema.GroupVersionResource, namespace string, object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	s.counter++
	accessor.SetResourceVersion(strconv.Itoa(s.counter))
	if accessor.GetDeletionTimestamp() != nil && len(accessor.GetFinalizers()) == 0 {
		return tracker.Delete(gvr, namespace, accessor.GetName())
	}
	return tracker.Update(gvr, object, namespace)
}

// merge lays a request over an object: the status alone, or everything but the status and what only the server sets.
func merge(current, wanted runtime.Object, subresource string) (runtime.Object, error) {
	from, to, err := fields(current, wanted)
	if err != nil {
		return nil, err
	}
	if subresource == "status" {
		from["status"] = to["status"]
		to = from
	} else {
		to["status"] = from["status"]
		for _, key := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"} {
			to["metadata"].(map[string]any)[key] = from["metadata"].(map[string]any)[key]
		}
	}
	return decode(to, current)
}

func fields(current, wanted runtime.Object) (from, to map[string]any, err error) {
	if from, err = runtime.DefaultUnstructuredConverter.ToUnstructured(current); err != nil {
		return nil, nil, err
	}
	to, err = runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	return from, to, err
}

func (s *Server) patch(tracker testing.ObjectTracker, action testing.PatchActionImpl) (runtime.Object, error) {
	found, err := tracker.Get(action.GetResource(), action.GetNamespace(), action.GetName())
	if err != nil {
		return nil, err
	}
	patched, err := applyPatch(found, action)
	if err != nil {
		return nil, err
	}
	return s.update(tracker, action.GetResource(), action.GetNamespace(), action.GetSubresource(), patched)
}

func (s *Server) delete(tracker testing.ObjectTracker, action testing.DeleteActionImpl) error {
	found, err := tracker.Get(action.GetResource(), action.GetNamespace(), action.GetName())
	if err != nil {
		return err
	}
	accessor, err := meta.Accessor(found)
	if err != nil {
		return err
	}
	if only := action.DeleteOptions.Preconditions; only != nil && only.UID != nil && *only.UID != accessor.GetUID() {
		return apierrors.NewConflict(action.GetResource().GroupResource(), action.GetName(), fmt.Errorf("another UID"))
	}
	if accessor.GetDeletionTimestamp() == nil {
		now := metav1.Now()
		accessor.SetDeletionTimestamp(&now)
	} else if len(accessor.GetFinalizers()) > 0 {
		return nil
	}
	return s.store(tracker, action.GetResource(), action.GetNamespace(), found)
}
