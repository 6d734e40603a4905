package cli

import (
	"strings"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	"github.com/openshift/client-go/image/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReferencesOfImagesAreMapped(t *testing.T) {
	for mapping, pairs := range map[string][2]string{
		"a.example.com/*=b.example.com/*":      {"a.example.com/team/app:v1", "b.example.com/team/app:v1"},
		"a.example.com:5000/*=b.example.com/*": {"a.example.com:5000/app@sha256:1", "b.example.com/app@sha256:1"},
		"*/team/app=b.example.com/app":         {"a.example.com/team/app:v1", "b.example.com/app:v1"},
		"a.example.com/team/app=*/other":       {"a.example.com/team/app:v1", "a.example.com/other:v1"},
		"c.example.com/*=b.example.com/*":      {"a.example.com/app", "a.example.com/app"},
		"a.example.com/app=b.example.com/app":  {"a.example.com/apps", "a.example.com/apps"},
	} {
		read, err := parseReferenceMapping(mapping)
		if err != nil {
			t.Errorf("%s: %v", mapping, err)
		}
		if got := read.replace(pairs[0]); got != pairs[1] {
			t.Errorf("%s: %q becomes %q, want %q", mapping, pairs[0], got, pairs[1])
		}
	}
	for mapping, want := range map[string]string{
		"a": "must be", "a/b": "must be", "a/=b/c": "must be", "a/*=b/c": "both sides", "*/*=b/*": "at least", "a/b:1=c/d": "leave them out",
	} {
		if _, err := parseReferenceMapping(mapping); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", mapping, err, want)
		}
	}
}

func TestReferencesAreMigratedWhenItIsConfirmed(t *testing.T) {
	client := fake.NewSimpleClientset(
		&imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: "sha256:1"}, DockerImageReference: "old.example.com/app@sha256:1"},
		&imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: "sha256:2"}, DockerImageReference: "other.example.com/app@sha256:2"},
		&imagev1.ImageStream{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"},
			Spec:       imagev1.ImageStreamSpec{Tags: []imagev1.TagReference{{Name: "v1", From: &corev1.ObjectReference{Kind: "DockerImage", Name: "old.example.com/app:v1"}}}},
			Status:     imagev1.ImageStreamStatus{Tags: []imagev1.NamedTagEventList{{Tag: "v1", Items: []imagev1.TagEvent{{DockerImageReference: "old.example.com/app@sha256:1"}}}}},
		})
	migrate := func(confirm bool) string {
		t.Helper()
		var out strings.Builder
		r := &references{client: client.ImageV1(), out: &out, include: []string{"imagestreams", "images"}, confirm: confirm}
		if err := r.run(t.Context(), []string{"old.example.com/*=new.example.com/*"}); err != nil {
			t.Error(err)
		}
		return out.String()
	}
	references := func() string {
		t.Helper()
		image, err := client.ImageV1().Images().Get(t.Context(), "sha256:1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stream, err := client.ImageV1().ImageStreams("shop").Get(t.Context(), "app", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join([]string{image.DockerImageReference, stream.Spec.Tags[0].From.Name, stream.Status.Tags[0].Items[0].DockerImageReference}, " ")
	}
	before := references()
	if out := migrate(false); !strings.Contains(out, "summary (dry run): total=3 errors=0 ignored=0 unchanged=1 migrated=2") || references() != before {
		t.Errorf("a trial: %s\n%s", references(), out)
	}
	if out := migrate(true); !strings.Contains(out, "migrated imagestreams/app -n shop") || references() != strings.ReplaceAll(before, "old", "new") {
		t.Errorf("confirmed: %s\n%s", references(), out)
	}
	if out := migrate(true); !strings.Contains(out, "unchanged=3 migrated=0") {
		t.Errorf("again: %s", out)
	}
}
