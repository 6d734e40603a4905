package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/test/kit"
)

// largeMapping returns an ImageStreamMapping whose image record is about 1 MiB.
func largeMapping(t *testing.T, author string, number int) string {
	t.Helper()
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
		"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%064d","size":2},
		"layers":[],"annotations":{"author":%q,"large":%q}}`, number, author, strings.Repeat("x", 1<<20))
	digest := record.Digest([]byte(manifest))
	return mapping(t, "app", digest, author+".example.com/app@"+digest, func(image *imagev1.Image) { image.DockerImageManifest = manifest })
}

// TestImagesOfTenantDoNotDelayOtherTenants writes many large image records, which are stored
// cluster-wide, while Alice writes objects.
func TestImagesOfTenantDoNotDelayOtherTenants(t *testing.T) {
	s := tenants(t)
	s.stream(s.alice, s.shop, "app")
	s.stream(s.mallory, s.evil, "app")
	const writers, perWriter = 48, 8
	ctx, cancel := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	refusals := make(chan error, writers)
	for writer := range writers {
		flood.Go(func() {
			for i := range perWriter {
				body := largeMapping(t, s.evil, writer*perWriter+i)
				err := s.mallory.Rest.Post().AbsPath(kit.GroupPath(imageGroup, s.evil, "imagestreammappings")).
					MaxRetries(0).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error()
				// Retry, because a busy server can reject a write before it counts the write, and
				// concurrent writes to one stream can conflict.
				if err != nil && !apierrors.IsConflict(err) && !strings.Contains(err.Error(), "too many large requests at the same time") {
					refusals <- err
					return
				}
			}
			refusals <- errors.New("no write exceeds the budget of the user")
		})
	}
	defer flood.Wait()
	defer cancel()
	if err := <-refusals; !strings.Contains(err.Error(), "too many or too large objects") {
		t.Fatalf("the flood of large records: %v", err)
	}
	for number := range 3 {
		s.alice.May("POST", kit.GroupPath(imageGroup, s.shop, "imagestreammappings"), largeMapping(t, s.shop, number))
	}
}

// TestDeletionOfLargeRecordsDelaysNoOtherProject deletes a project that created more large image
// records than the platform can rewrite at the same time. Another project uses all of these
// records, so each record gets a new owner. Meanwhile, the other project writes large objects.
func TestDeletionOfLargeRecordsDelaysNoOtherProject(t *testing.T) {
	s := tenants(t)
	s.stream(s.alice, s.shop, "app")
	s.stream(s.mallory, s.evil, "app")
	const records = 34 // more than the 32 MiB that the platform writes at a time
	digests := make([]string, records)
	for number := range records {
		body := largeMapping(t, s.evil, number)
		s.mallory.May("POST", kit.GroupPath(imageGroup, s.evil, "imagestreammappings"), body)
		s.alice.May("POST", kit.GroupPath(imageGroup, s.shop, "imagestreammappings"), body)
		var image imagev1.ImageStreamMapping
		if err := json.Unmarshal([]byte(body), &image); err != nil {
			t.Fatal(err)
		}
		digests[number] = image.Image.Name
	}
	administrator := s.Administrator()
	owned := func(project string) int {
		t.Helper()
		body, err := administrator.Rest.Get().AbsPath("/apis/"+imageGroup+"/v1/images").Param("labelSelector", record.ProjectLabel+"="+project).
			SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").DoRaw(t.Context())
		var list metav1.PartialObjectMetadataList
		if err := errors.Join(err, json.Unmarshal(body, &list)); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	if got := owned(s.evil); got != records {
		t.Fatalf("the project has %d records, want %d", got, records)
	}
	s.mallory.May("DELETE", "/apis/project.openshift.io/v1/projects/"+s.evil, "")
	s.WaitFor("a new owner of the first record", func(context.Context) error {
		if owned(s.shop) == 0 {
			return errors.New("all records still have the former owner")
		}
		return nil
	})
	s.alice.May("POST", kit.CorePath(s.shop, "configmaps"),
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large"},"data":{"large":"`+strings.Repeat("x", 900<<10)+`"}}`)
	s.alice.May("POST", kit.GroupPath(imageGroup, s.shop, "imagestreammappings"), largeMapping(t, s.shop, records))
	for _, digest := range digests {
		administrator.May("DELETE", "/apis/"+imageGroup+"/v1/images/"+digest, "")
	}
}
