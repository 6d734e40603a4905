package attack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/test/kit"
)

// largeMapping is a mapping of an image with a record of about 1 MiB.
func largeMapping(t *testing.T, author string, number int) string {
	t.Helper()
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
		"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%064d","size":2},
		"layers":[],"annotations":{"author":%q,"large":%q}}`, number, author, strings.Repeat("x", 1<<20))
	digest := record.Digest([]byte(manifest))
	return mapping(t, "app", digest, author+".example.com/app@"+digest, func(image *imagev1.Image) { image.DockerImageManifest = manifest })
}

// TestImagesOfOneTenantDoNotDelayThoseOfAnother floods the store with records of images, which
// belong to no namespace.
func TestImagesOfOneTenantDoNotDelayThoseOfAnother(t *testing.T) {
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
					SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error()
				if err != nil {
					refusals <- err
					return
				}
			}
			refusals <- errors.New("all writes are admitted")
		})
	}
	defer flood.Wait()
	defer cancel()
	if err := <-refusals; !strings.Contains(err.Error(), "too many large objects") {
		t.Fatalf("the flood of large records: %v", err)
	}
	for number := range 3 {
		s.alice.May("POST", kit.GroupPath(imageGroup, s.shop, "imagestreammappings"), largeMapping(t, s.shop, number))
	}
}
