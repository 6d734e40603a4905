package registryclient

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// maxReferrers bounds the referrers of a manifest that are told.
const maxReferrers = 500

// Referrers lists what refers to a manifest of a repository such as "registry.example.com/app", as the registry's first page or the tag that stands for it has it; of
// more than 500 the first.
//
// Source: OCI distribution specification 1.1, "Listing Referrers" and "Referrers Tag Schema".
func (c Client) Referrers(ctx context.Context, repository, digest string) ([]ocispec.Descriptor, error) {
	parsed, err := name.NewDigest(repository+"@"+digest, c.Names()...)
	if err != nil {
		return nil, err
	}
	session, err := c.Session()
	if err != nil {
		return nil, err
	}
	listed, err := session.referrers(ctx, parsed)
	if err != nil {
		return nil, fmt.Errorf("list referrers of %q: %w", parsed.Name(), explain(err))
	}
	var index ocispec.Index
	if err := json.Unmarshal(listed, &index); err != nil {
		return nil, fmt.Errorf("read referrers of %q: %w", parsed.Name(), explain(err))
	}
	sound := slices.DeleteFunc(index.Manifests, func(d ocispec.Descriptor) bool { return d.Digest.Validate() != nil })
	return sound[:min(len(sound), maxReferrers)], nil
}
