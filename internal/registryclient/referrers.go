package registryclient

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// maxReferrers is the maximum number of referrers that are listed for a manifest.
const maxReferrers = 500

// Referrers lists the manifests that refer to a manifest in a repository such as
// "registry.example.com/app". It reads the first page of the registry's list, or the fallback tag.
// It returns up to 500 manifests.
//
// Source: OCI distribution specification 1.1, "Listing Referrers" and "Referrers Tag Schema".
func (c Client) Referrers(ctx context.Context,
	repository, digest string) ([]ocispec.Descriptor, error) {
	parsed, err := name.NewDigest(repository+"@"+digest, c.Names()...)
	if err != nil {
		return nil, err
	}
	session, err := c.Session()
	if err != nil {
		return nil, err
	}
	output, err := session.referrers(ctx, parsed)
	if err != nil {
		return nil, fmt.Errorf("list referrers of %q: %w", parsed.Name(), explain(err))
	}
	var index ocispec.Index
	if err := json.Unmarshal(output, &index); err != nil {
		return nil, fmt.Errorf("parse referrers of %q: %w", parsed.Name(), explain(err))
	}
	valid := slices.DeleteFunc(index.Manifests, func(d ocispec.Descriptor) bool { return d.Digest.Validate() != nil })
	return valid[:min(len(valid), maxReferrers)], nil
}
