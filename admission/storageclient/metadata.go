package storageclient

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkMetadata rejects all metadata changes except changes to the given finalizers and
// annotations.
func checkMetadata(before, after metav1.Object, finalizers, annotations []string) error {
	field := ""
	switch {
	case !maps.Equal(before.GetLabels(), after.GetLabels()):
		field = "labels"
	case !equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()):
		field = "ownerReferences"
	case !slices.Equal(otherValues(before.GetFinalizers(), finalizers), otherValues(after.GetFinalizers(), finalizers)):
		field = "finalizers"
	case !maps.Equal(otherKeys(before.GetAnnotations(), annotations), otherKeys(after.GetAnnotations(), annotations)):
		field = "annotations"
	default:
		return nil
	}
	return fmt.Errorf("metadata.%s: the client of local storage can only change its own finalizers and annotations", field)
}

// otherValues returns the sorted values of a list that are not in local.
func otherValues(list, local []string) []string {
	rest := slices.DeleteFunc(slices.Clone(list), func(value string) bool { return slices.Contains(local, value) })
	slices.Sort(rest)
	return rest
}

// otherKeys returns the entries of a map whose keys are not in local.
func otherKeys(entries map[string]string, local []string) map[string]string {
	rest := maps.Clone(entries)
	maps.DeleteFunc(rest, func(key, _ string) bool { return slices.Contains(local, key) })
	return rest
}
