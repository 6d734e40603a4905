package policy

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/distribution/reference"

	"github.com/slipway-platform/slipway/internal/imagesignature"
)

// Requirement types.
const (
	acceptAnything, reject, signedBy = "insecureAcceptAnything", "reject", "signedBy"
)

// requirement is a single requirement for images.
type requirement struct {
	Type     string   `json:"type"`
	KeyType  string   `json:"keyType"`
	KeyPath  string   `json:"keyPath"`
	KeyPaths []string `json:"keyPaths"`
	KeyData  []byte   `json:"keyData"`
	// SignedIdentity is the required identity in the signature. By default, it must be the image's
	// identity.
	SignedIdentity *identity `json:"signedIdentity"`
}

func (r *requirement) check() error {
	switch r.Type {
	case acceptAnything, reject:
		return nil
	case signedBy:
	default:
		return fmt.Errorf("type is %q, must be %s, %s or %s", r.Type, acceptAnything, reject, signedBy)
	}
	if r.KeyType != "GPGKeys" {
		return fmt.Errorf("keyType is %q, must be GPGKeys", r.KeyType)
	}
	keyCount := 0
	for _, set := range []bool{r.KeyPath != "", len(r.KeyPaths) > 0, len(r.KeyData) > 0} {
		if set {
			keyCount++
		}
	}
	if keyCount != 1 {
		return errors.New("must have one of keyPath, keyPaths and keyData")
	}
	return r.SignedIdentity.check()
}

// allow returns an error if an image does not meet the requirement.
func (r *requirement) allow(name reference.Named, digest string, signatures Signatures) error {
	switch r.Type {
	case acceptAnything:
		return nil
	case signedBy:
		return r.allowSigned(name, digest, signatures)
	}
	return errors.New("the node's signature policy rejects the image")
}

// allowSigned accepts an image that has at least one valid signature for its digest and identity.
func (r *requirement) allowSigned(name reference.Named, digest string, signatures Signatures) error {
	keys, err := r.keys()
	if err != nil {
		return err
	}
	all, err := signatures()
	if err != nil {
		return err
	}
	problem := errors.New("the image has no signature")
	for _, content := range all {
		claims, err := imagesignature.Open(content, keys)
		if err == nil && claims.Digest != digest {
			err = errors.New("the signature is for another image")
		}
		if err == nil && !r.SignedIdentity.matches(name, claims.Identity) {
			err = fmt.Errorf("the signature is for the identity %q", claims.Identity)
		}
		if err == nil {
			return nil
		}
		problem = err
	}
	return problem
}

// keys reads the requirement's public keys.
func (r *requirement) keys() (openpgp.EntityList, error) {
	if len(r.KeyData) > 0 {
		return imagesignature.Keys(r.KeyData)
	}
	var all openpgp.EntityList
	for _, name := range append(slices.Clone(r.KeyPaths), r.KeyPath) {
		if name == "" {
			continue
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read signature policy public keys: %w", err)
		}
		keys, err := imagesignature.Keys(content)
		if err != nil {
			return nil, fmt.Errorf("read public keys %q: %w", name, err)
		}
		all = append(all, keys...)
	}
	return all, nil
}

// identity is a rule for the identity that a signature contains.
type identity struct {
	Type             string `json:"type"`
	DockerReference  string `json:"dockerReference"`
	DockerRepository string `json:"dockerRepository"`
	Prefix           string `json:"prefix"`
	SignedPrefix     string `json:"signedPrefix"`
}

func (i *identity) check() error {
	if i == nil {
		return nil
	}
	valid := map[string]bool{
		"matchExact": true, "matchRepoDigestOrExact": true, "matchRepository": true, "exactReference": i.DockerReference != "",
		"exactRepository": i.DockerRepository != "", "remapIdentity": i.Prefix != "" && i.SignedPrefix != "",
	}
	if complete, exists := valid[i.Type]; !exists || !complete {
		return fmt.Errorf("signedIdentity has an unknown type %q, or lacks a field that the type needs", i.Type)
	}
	return nil
}

// matches reports whether a signature's identity matches the image's identity.
func (i *identity) matches(name reference.Named, signed string) bool {
	parsed, err := reference.ParseNormalizedNamed(signed)
	if err != nil {
		return false
	}
	if i == nil {
		return digestOrExact(name, parsed)
	}
	switch i.Type {
	case "matchExact":
		return !reference.IsNameOnly(name) && name.String() == parsed.String()
	case "matchRepository":
		return name.Name() == parsed.Name()
	case "exactReference":
		exact, err := reference.ParseNormalizedNamed(i.DockerReference)
		return err == nil && parsed.String() == exact.String()
	case "exactRepository":
		exact, err := reference.ParseNormalizedNamed(i.DockerRepository)
		return err == nil && parsed.Name() == exact.Name()
	case "remapIdentity":
		return i.remapped(name, parsed)
	}
	return digestOrExact(name, parsed)
}

// remapped compares the signature's identity with the image's name after replacing the name's
// prefix, as for a mirror.
func (i *identity) remapped(name, signed reference.Named) bool {
	rest, ok := strings.CutPrefix(name.String(), i.Prefix)
	if !ok || rest != "" && !strings.ContainsAny(rest[:1], "/:@") {
		return digestOrExact(name, signed)
	}
	mapped, err := reference.ParseNormalizedNamed(i.SignedPrefix + rest)
	return err == nil && digestOrExact(mapped, signed)
}

// digestOrExact compares names. If the image's name contains a digest, the signature's tag is
// ignored.
func digestOrExact(name, signed reference.Named) bool {
	if _, ok := name.(reference.Canonical); ok {
		return name.Name() == signed.Name()
	}
	return !reference.IsNameOnly(name) && name.String() == signed.String()
}
