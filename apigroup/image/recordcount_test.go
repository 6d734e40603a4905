package image

import (
	"context"
	"fmt"
	"strings"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// counterOf returns a counter for a cluster with records. projects maps the names of images to the
// projects that created their records. limit is the value of the limit annotation of the shop
// project.
func counterOf(t testing.TB, limit string, projects map[string]string) *recordCounter {
	t.Helper()
	namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{recordLimitAnnotation: limit}}}
	if err := namespaces.Add(shop); err != nil {
		t.Fatal(err)
	}
	c := newRecordCounter()
	c.namespaces = corelisters.NewNamespaceLister(namespaces)
	var records []any
	for image, project := range projects {
		records = append(records, recordOfProject(image, project))
	}
	if err := c.Replace(records, ""); err != nil {
		t.Fatal(err)
	}
	return c
}

func recordOfProject(image, project string) *imagev1.Image {
	created := &imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: image}}
	if project != "" {
		created.Labels = map[string]string{record.ProjectLabel: project}
	}
	return created
}

func TestProjectCannotExceedRecordLimit(t *testing.T) {
	c := counterOf(t, "2", map[string]string{"a": "shop", "b": "other", "old": ""})
	if _, err := c.reserve(t.Context(), "shop", "c"); err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{"a", "b", "old"} {
		if _, err := c.reserve(t.Context(), "shop", image); err != nil {
			t.Errorf("an existing record: %v", err)
		}
	}
	_, err := c.reserve(t.Context(), "shop", "d")
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "its limit is 2") || !strings.Contains(err.Error(), recordLimitAnnotation) {
		t.Errorf("a record above the limit: %v", err)
	}
	if _, err := c.reserve(t.Context(), "other", "d"); err != nil {
		t.Errorf("a record of another project: %v", err)
	}
	if err := c.Delete(recordOfProject("a", "shop")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.reserve(t.Context(), "shop", "e"); err != nil {
		t.Errorf("after a record is pruned: %v", err)
	}
}

func TestReleasedRecordDoesNotCount(t *testing.T) {
	c := counterOf(t, "1", nil)
	release, err := c.reserve(t.Context(), "shop", "a")
	if err != nil {
		t.Fatal(err)
	}
	release()
	if release, err = c.reserve(t.Context(), "shop", "b"); err != nil {
		t.Fatal(err)
	}
	// Another project creates the record.
	if err := c.Add(recordOfProject("b", "other")); err != nil {
		t.Fatal(err)
	}
	release()
	if c.counts["shop"] != 0 || c.counts["other"] != 1 {
		t.Errorf("the counts are %v", c.counts)
	}
}

func TestRecordLimitIsReadFromNamespace(t *testing.T) {
	for _, tt := range []struct {
		name, annotation, project string
		want                      int
	}{
		{"default", "", "shop", maxRecords},
		{"number", "5", "shop", 5},
		{"no limit", "none", "shop", -1},
		{"invalid", "many", "shop", maxRecords},
		{"negative", "-1", "shop", maxRecords},
		{"unknown project", "5", "other", maxRecords},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := counterOf(t, tt.annotation, nil).limit(tt.project); got != tt.want {
				t.Errorf("the limit is %d, want %d", got, tt.want)
			}
		})
	}
}

func TestRecordsWaitForFirstCount(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newRecordCounter().reserve(ctx, "shop", "a"); !apierrors.IsServerTimeout(err) {
		t.Errorf("error is %v", err)
	}
}

func BenchmarkReserveAmongTenThousandRecords(b *testing.B) {
	projects := map[string]string{}
	for i := range 10_000 {
		projects[fmt.Sprintf("sha256:%064d", i)] = "shop"
	}
	c := counterOf(b, "none", projects)
	for b.Loop() {
		release, err := c.reserve(b.Context(), "shop", "new")
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}
