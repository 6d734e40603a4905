package apiserver

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// FuzzElements verifies that elements does not undercount: if Kubernetes can decode a protobuf
// message, the lists in the decoded object do not have more elements than are counted. The first
// element of each list is not counted, and a message has fewer than 64 lists.
func FuzzElements(f *testing.F) {
	for _, pod := range []corev1.Pod{
		{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 9)}},
		{Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: make([]corev1.EnvVar, 3), Args: []string{"", "", ""}}}}},
	} {
		body, err := pod.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte("\x0b\x0c\x12\x02\x12\x00"))
	const lists = 64
	f.Fuzz(func(t *testing.T, body []byte) {
		var pod corev1.Pod
		if pod.Unmarshal(body) != nil {
			return
		}
		if got, most := listElements(reflect.ValueOf(pod)), lists*(1+elements(body, 0)); got > most {
			t.Errorf("%q has %d elements, want at most %d", body, got, most)
		}
	})
}

// listElements returns the total number of elements in all lists within a value.
func listElements(value reflect.Value) (count int) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			return listElements(value.Elem())
		}
	case reflect.Struct:
		for i := range value.NumField() {
			count += listElements(value.Field(i))
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return 0
		}
		for i := range value.Len() {
			count += 1 + listElements(value.Index(i))
		}
	}
	return count
}
