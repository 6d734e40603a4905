package attack

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestTenantCannotCreateEndlessImageRecords maps images from registries that do not exist, to
// create an image record for each image.
func TestTenantCannotCreateEndlessImageRecords(t *testing.T) {
	s := tenants(t)
	const limit = "slipway.openshift.io/image-records"
	s.stream(s.mallory, s.evil, "copy")
	s.stream(s.alice, s.shop, "app")
	s.OC("annotate", "namespace", s.evil, limit+"=2")
	s.mallory.Refused("PATCH", "/apis/project.openshift.io/v1/projects/"+s.evil, `{"metadata":{"annotations":{"`+limit+`":"none"}}}`,
		"immutable", func(err error) bool { return err != nil })
	mappings := kit.GroupPath(imageGroup, s.evil, "imagestreammappings")
	add := func() (digest string, err error) {
		image := build(t)
		response, err := s.mallory.Try("POST", mappings, mapping(t, "copy", image.digest, "evil.example.com/copy@"+image.digest, image.proof))
		if err != nil {
			err = fmt.Errorf("%w: %s", err, response)
		}
		return image.digest, err
	}
	var digests []string
	s.WaitFor("the limit", func(context.Context) error {
		digest, err := add()
		if err == nil {
			digests = append(digests, digest)
			return fmt.Errorf("record %d is created", len(digests))
		}
		if !strings.Contains(err.Error(), "its limit is 2") || !strings.Contains(err.Error(), limit) {
			t.Fatal(err)
		}
		return nil
	})
	image := build(t)
	s.alice.May("POST", kit.GroupPath(imageGroup, s.shop, "imagestreammappings"),
		mapping(t, "app", image.digest, "registry.example.com/shop/app@"+image.digest, image.proof))
	// An existing record counts toward the limit only of the project that created it.
	s.mallory.May("POST", mappings, mapping(t, "copy", image.digest, "registry.example.com/shop/app@"+image.digest, image.proof))
	s.hidden(t, image.digest, `"`+s.shop+`"`)
	for _, digest := range digests {
		s.OC("delete", "image", digest)
	}
	var last string
	s.WaitFor("a record to be accepted after a deletion", func(context.Context) (err error) {
		last, err = add()
		return err
	})
	// Records must be deleted with their project. Otherwise, Mallory could create more records in
	// other projects.
	s.mallory.May("DELETE", "/apis/project.openshift.io/v1/projects/"+s.evil, "")
	s.WaitFor("the record of the deleted project to be removed", func(context.Context) error {
		if got, err := s.TryOC("get", "image", last); err == nil {
			return fmt.Errorf("there is %s", got)
		}
		return nil
	})
	s.OC("get", "image", image.digest)
}
