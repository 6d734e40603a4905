package apitest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
)

// read returns a request's body as JSON. It converts the protobuf that typed clients send.
func read(r *http.Request, t target) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) == 0 || t.verb == "patch" || strings.Contains(r.Header.Get("Content-Type"), "json") {
		return body, err
	}
	decoded, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	decoded.GetObjectKind().SetGroupVersionKind(*kind)
	return json.Marshal(decoded)
}

func (s *Server) list(t target) object {
	items := []object{}
	collection := s.objects[t.collection()]
	for _, key := range slices.Sorted(maps.Keys(collection)) {
		if t.namespace == "" || strings.HasPrefix(key, t.namespace+"/") {
			items = append(items, collection[key])
		}
	}
	version := schema.GroupVersion{Group: t.group, Version: t.version}
	list := object{"metadata": object{"resourceVersion": text(s.version)}, "items": items}
	kind := listKind(version, t.resource)
	if kind == "" && len(items) > 0 {
		if of, ok := items[0]["kind"].(string); ok {
			kind = of + "List"
		}
	}
	if kind != "" {
		list["kind"], list["apiVersion"] = kind, version.String()
	}
	return list
}

// listKind returns the kind of a resource's lists, or "" if client-go's scheme does not contain the
// resource. It derives resource names from kinds.
func listKind(version schema.GroupVersion, resource string) string {
	for kind := range scheme.Scheme.KnownTypes(version) {
		if plural, _ := apimeta.UnsafeGuessKindToResource(version.WithKind(kind)); plural.Resource == resource {
			return kind + "List"
		}
	}
	return ""
}

func (s *Server) get(t target) (object, error) {
	have, ok := s.objects[t.collection()][t.key()]
	if !ok {
		return nil, apierrors.NewNotFound(t.groupResource(), t.name)
	}
	return have, nil
}

func (s *Server) create(t target, body []byte) (object, error) {
	created := object{}
	if err := json.Unmarshal(body, &created); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	m := meta(created)
	if m.GetName() == "" {
		m.SetName(m.GetGenerateName() + string(uuid.NewUUID())[:8])
	}
	t.name = m.GetName()
	if t.namespace != "" {
		m.SetNamespace(t.namespace)
	}
	if t.resource == "imagestreamimports" { // a request that the API server does not store
		return created, nil
	}
	if _, ok := s.objects[t.collection()][t.key()]; ok {
		return nil, apierrors.NewAlreadyExists(t.groupResource(), t.name)
	}
	if m.GetUID() == "" {
		m.SetUID(uuid.NewUUID())
	}
	m.SetCreationTimestamp(metav1.Now())
	s.store(t, "ADDED", created)
	return created, nil
}

// store stores an object with a new resource version and notifies the watches.
func (s *Server) store(t target, kind string, o object) {
	s.version++
	meta(o).SetResourceVersion(text(s.version))
	collection := s.objects[t.collection()]
	if collection == nil {
		collection = map[string]object{}
		s.objects[t.collection()] = collection
	}
	collection[t.key()] = o
	if kind == "DELETED" {
		delete(collection, t.key())
	}
	s.history = append(s.history, change{s.version, t.collection(), kind, o})
	s.changed.Broadcast()
}

func (s *Server) update(t target, body []byte) (object, error) {
	have, err := s.get(t)
	if err != nil {
		return nil, err
	}
	next := object{}
	if err := json.Unmarshal(body, &next); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.replace(t, have, next)
}

// replace implements update and patch. next is the replacement for the stored object have.
func (s *Server) replace(t target, have, next object) (object, error) {
	before, after := meta(have), meta(next)
	if desired := after.GetResourceVersion(); desired != "" && desired != before.GetResourceVersion() {
		return nil, apierrors.NewConflict(t.groupResource(), t.name, fmt.Errorf("the object has been modified"))
	}
	if uid := after.GetUID(); uid != "" && uid != before.GetUID() {
		return nil, apierrors.NewConflict(t.groupResource(), t.name,
			fmt.Errorf("precondition failed: UID %s, not %s", before.GetUID(), uid))
	}
	if t.subresource == "status" {
		existing := runtime.DeepCopyJSON(have)
		existing["status"] = next["status"]
		next, after = existing, meta(existing)
	} else if hasStatus[t.resource] {
		next["status"] = have["status"]
	}
	after.SetUID(before.GetUID())
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	after.SetDeletionTimestamp(before.GetDeletionTimestamp())
	after.SetResourceVersion(before.GetResourceVersion())
	if before.GetDeletionTimestamp() != nil {
		for _, finalizer := range after.GetFinalizers() {
			if !slices.Contains(before.GetFinalizers(), finalizer) {
				return nil, apierrors.NewInvalid(schema.GroupKind{Group: t.group, Kind: before.GetKind()}, t.name, nil)
			}
		}
		if len(after.GetFinalizers()) == 0 {
			s.store(t, "DELETED", next)
			return next, nil
		}
	}
	if reflect.DeepEqual(have, next) {
		return have, nil // like etcd, do not write an unchanged object
	}
	s.store(t, "MODIFIED", next)
	return next, nil
}

// hasStatus contains the resources whose status can be changed only through the status subresource.
var hasStatus = map[string]bool{"persistentvolumes": true, "persistentvolumeclaims": true, "volumeattachments": true, "nodes": true, "pods": true,
	"volumesnapshots": true, "volumesnapshotcontents": true, "clusterservicebrokers": true, "servicebrokers": true,
	"clusterserviceclasses": true, "clusterserviceplans": true, "serviceinstances": true, "servicebindings": true}

func (s *Server) patch(t target, kind string, patch []byte) (object, error) {
	have, err := s.get(t)
	if err != nil {
		return nil, err
	}
	if types.PatchType(kind) == types.StrategicMergePatchType {
		next, err := merged(have, patch)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return s.replace(t, have, next)
	}
	original, err := json.Marshal(have)
	if err != nil {
		return nil, err
	}
	var result []byte
	switch types.PatchType(kind) {
	case types.MergePatchType:
		if result, err = jsonpatch.MergePatch(original, patch); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	case types.JSONPatchType:
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if result, err = operations.Apply(original); err != nil {
			return nil, apierrors.NewConflict(t.groupResource(), t.name, err) // a test of the patch failed
		}
	default:
		return nil, apierrors.NewBadRequest("patch type " + kind)
	}
	next := object{}
	if err := json.Unmarshal(result, &next); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.replace(t, have, next)
}

// merged returns a copy of an object with a strategic merge patch applied.
func merged(have object, patch []byte) (object, error) {
	typed, err := scheme.Scheme.New(meta(have).GroupVersionKind())
	if err != nil {
		return nil, err
	}
	change := object{}
	if err := json.Unmarshal(patch, &change); err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(have), change, typed)
}

func (s *Server) delete(t target, body []byte) (object, error) {
	have, err := s.get(t)
	if err != nil {
		return nil, err
	}
	var options metav1.DeleteOptions
	if len(body) > 0 {
		if err := json.Unmarshal(body, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	next := runtime.DeepCopyJSON(have)
	m := meta(next)
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != m.GetUID() {
		return nil, apierrors.NewConflict(t.groupResource(), t.name, fmt.Errorf("precondition failed: UID"))
	}
	if p := options.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion != m.GetResourceVersion() {
		return nil, apierrors.NewConflict(t.groupResource(), t.name, fmt.Errorf("precondition failed: resource version"))
	}
	if len(m.GetFinalizers()) == 0 {
		s.store(t, "DELETED", next)
		return next, nil
	}
	if m.GetDeletionTimestamp() == nil {
		now := metav1.NewTime(time.Now())
		m.SetDeletionTimestamp(&now)
		s.store(t, "MODIFIED", next)
	}
	return next, nil
}
