package apitest

import (
	"encoding/json"
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/testing"
)

// applyPatch is an object with a patch applied to it.
func applyPatch(current runtime.Object, action testing.PatchActionImpl) (runtime.Object, error) {
	before, err := json.Marshal(current)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch action.GetPatchType() {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, action.GetPatch())
	case types.StrategicMergePatchType:
		after, err = strategicpatch.StrategicMergePatch(before, action.GetPatch(), current)
	default:
		err = fmt.Errorf("unexpected patch %q", action.GetPatchType())
	}
	if err != nil {
		return nil, err
	}
	patched := empty(current)
	return patched, json.Unmarshal(after, patched)
}

// decode is an object of the same type as another, from its fields.
func decode(fields map[string]any, like runtime.Object) (runtime.Object, error) {
	object := empty(like)
	return object, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, object)
}

func empty(like runtime.Object) runtime.Object {
	return reflect.New(reflect.TypeOf(like).Elem()).Interface().(runtime.Object)
}
