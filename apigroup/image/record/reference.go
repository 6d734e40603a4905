package record

import (
	"fmt"

	"github.com/distribution/reference"
)

// Reference is the parsed name of an image in a registry.
type Reference struct {
	// Registry is the host and port. If a name does not contain a registry, Registry is Docker's
	// public registry.
	Registry string
	// Repository is the path in the registry, for example "library/busybox".
	Repository string
	// Tag and Digest identify the image. Both fields are optional.
	Tag, Digest string
}

// ParseReference parses a name such as "busybox", "registry.example.com:5000/team/app:v1" or
// "app@sha256:...".
func ParseReference(text string) (Reference, error) {
	ref, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return Reference{}, fmt.Errorf("parse image reference %q: %w", text, err)
	}
	parsed := Reference{Registry: reference.Domain(ref), Repository: reference.Path(ref)}
	if withTag, ok := ref.(reference.Tagged); ok {
		parsed.Tag = withTag.Tag()
	}
	if digested, ok := ref.(reference.Digested); ok {
		parsed.Digest = digested.Digest().String()
	}
	return parsed, nil
}

// Name returns the registry and the repository, separated by a slash.
func (r Reference) Name() string { return r.Registry + "/" + r.Repository }

// AtDigest returns a reference to the given digest in the same repository.
func (r Reference) AtDigest(digest string) string { return r.Name() + "@" + digest }
