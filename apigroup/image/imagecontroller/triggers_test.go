package imagecontroller

import (
	"testing"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func number(n int64) *int64 { return &n }

func TestTagIsImportedOncePerChange(t *testing.T) {
	tag := func(generation *int64) *imagev1.TagReference {
		return &imagev1.TagReference{Name: "v1", Generation: generation, From: &corev1.ObjectReference{Kind: "DockerImage", Name: "registry.example.com/app:v1"}}
	}
	failed := imagev1.TagEventCondition{Type: imagev1.ImportSuccess, Status: corev1.ConditionFalse, Generation: 2}
	for name, tt := range map[string]struct {
		tag    *imagev1.TagReference
		status imagev1.NamedTagEventList
		want   bool
	}{
		"new":                      {tag(number(2)), imagev1.NamedTagEventList{}, true},
		"imported":                 {tag(number(2)), imagev1.NamedTagEventList{Items: []imagev1.TagEvent{{Generation: 2}}}, false},
		"changed since":            {tag(number(3)), imagev1.NamedTagEventList{Items: []imagev1.TagEvent{{Generation: 2}}}, true},
		"failed":                   {tag(number(2)), imagev1.NamedTagEventList{Conditions: []imagev1.TagEventCondition{failed}}, false},
		"changed since the import": {tag(number(3)), imagev1.NamedTagEventList{Conditions: []imagev1.TagEventCondition{failed}}, true},
		"import requested again":   {tag(nil), imagev1.NamedTagEventList{Items: []imagev1.TagEvent{{Generation: 2}}}, true},
	} {
		tt.status.Tag = "v1"
		stream := &imagev1.ImageStream{Status: imagev1.ImageStreamStatus{Tags: []imagev1.NamedTagEventList{tt.status}}}
		if got := pending(stream, tt.tag); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestScheduledTagsAreDueAfterInterval(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	streams := &Streams{Interval: 15 * time.Minute}
	at := func(last string, scheduled bool) *imagev1.ImageStream {
		stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{checkAnnotation: last}}}
		stream.Spec.Tags = []imagev1.TagReference{{Name: "v1", From: &corev1.ObjectReference{Kind: "DockerImage"}, ImportPolicy: imagev1.TagImportPolicy{Scheduled: scheduled}}}
		return stream
	}
	for name, tt := range map[string]struct {
		stream *imagev1.ImageStream
		wait   time.Duration
		due    bool
	}{
		"not scheduled": {at("", false), 0, false},
		"never":         {at("", true), 15 * time.Minute, true},
		"just now":      {at("2026-01-01T11:55:00Z", true), 10 * time.Minute, false},
		"long ago":      {at("2026-01-01T11:45:00Z", true), 15 * time.Minute, true},
		"in the future": {at("2027-01-01T11:45:00Z", true), 15 * time.Minute, false},
		"not readable":  {at("yesterday", true), 15 * time.Minute, true},
	} {
		if wait, due := streams.due(tt.stream, now); wait != tt.wait || due != tt.due {
			t.Errorf("%s: after %v, due %v, want %v, %v", name, wait, due, tt.wait, tt.due)
		}
	}
	if wait, due := (&Streams{}).due(at("", true), now); wait != 0 || due {
		t.Error("disabled scheduled imports are due")
	}
}

func TestImageIsSetAtPath(t *testing.T) {
	for name, tt := range map[string]struct {
		workload workload
		path     string
		want     bool
	}{
		"by name":            {workloads()[0], `spec.template.spec.containers[?(@.name=="web")].image`, true},
		"with single quotes": {workloads()[0], `spec.template.spec.containers[?(@.name=='web')].image`, true},
		"by number":          {workloads()[0], `spec.template.spec.containers[1].image`, true},
		"another name":       {workloads()[0], `spec.template.spec.containers[?(@.name=="db")].image`, false},
		"beyond the end":     {workloads()[0], `spec.template.spec.containers[2].image`, false},
		"another field":      {workloads()[0], `spec.template.spec.containers[1].command`, false},
		"of a cron job":      {workloads()[3], `spec.jobTemplate.spec.template.spec.containers[?(@.name=="web")].image`, true},
	} {
		pod := map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "side", "image": "side"}, map[string]any{"name": "web", "image": "old"},
		}}}
		object := &unstructured.Unstructured{Object: map[string]any{}}
		if err := unstructured.SetNestedMap(object.Object, pod, tt.workload.template...); err != nil {
			t.Fatal(err)
		}
		triggerController := &triggerController{workload: tt.workload}
		if got := triggerController.set(object, tt.path, "new"); got != tt.want {
			t.Errorf("%s: changed %v, want %v", name, got, tt.want)
		}
		containers, _, err := unstructured.NestedSlice(object.Object, append(append([]string{}, tt.workload.template...), "spec", "containers")...)
		if err != nil {
			t.Fatal(err)
		}
		image := containers[1].(map[string]any)["image"]
		if (image == "new") != tt.want || containers[0].(map[string]any)["image"] != "side" {
			t.Errorf("%s: containers %v", name, containers)
		}
		if triggerController.set(object, tt.path, "new") {
			t.Errorf("%s: setting the same image again is reported as a change", name)
		}
	}
}

func TestAnnotationIsValidated(t *testing.T) {
	read, err := triggersOf(map[string]string{Annotation: `[{"from":{"kind":"ImageStreamTag","name":"web:latest","namespace":"images"},"fieldPath":"x"},{"from":{"name":"db:1"},"paused":true}]`})
	if err != nil || len(read) != 2 {
		t.Fatalf("%d triggers, %v", len(read), err)
	}
	if got := read[0].stream("shop").String(); got != "images/web" {
		t.Errorf("stream %q", got)
	}
	if got := read[1].stream("shop").String(); got != "shop/db" || !read[1].Paused {
		t.Errorf("stream %q, paused %v", got, read[1].Paused)
	}
	if _, err := triggersOf(map[string]string{Annotation: "{"}); err == nil {
		t.Error("an invalid annotation is accepted")
	}
}
