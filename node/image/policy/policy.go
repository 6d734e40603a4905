// Package policy decides which images a node may pull. It reads the signature policy format of
// Podman and Skopeo, and verifies signatures with the keys that the policy specifies.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapter 12;
// containers-policy.json(5).
package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/distribution/reference"
)

// Policy holds the requirements for images, keyed by scope.
type Policy struct {
	general []requirement
	// scopes maps registries, repositories and images to their requirements. The key "" applies to
	// images in registries that match no other key.
	scopes map[string][]requirement
}

// file is a policy's JSON format.
type file struct {
	Default    []requirement                       `json:"default"`
	Transports map[string]map[string][]requirement `json:"transports"`
}

// transport is the only transport that nodes use. The policy for other transports has no effect.
const transport = "docker"

// Read reads a policy from a file. If the file does not exist, the policy accepts all images. Read
// returns an error if the policy has no default or contains a requirement that nodes cannot check.
func Read(name string) (*Policy, error) {
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &Policy{general: []requirement{{Type: acceptAnything}}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read signature policy: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var decoded file
	if err := decoder.Decode(&decoded); err != nil {
		return nil, fmt.Errorf("read signature policy %q: %w", name, err)
	}
	policy := &Policy{general: decoded.Default, scopes: decoded.Transports[transport]}
	if err := policy.check(); err != nil {
		return nil, fmt.Errorf("read signature policy %q: %w", name, err)
	}
	return policy, nil
}

func (p *Policy) check() error {
	all := map[string][]requirement{"default": p.general}
	for scope, list := range p.scopes {
		all[fmt.Sprintf("transports.%s.%q", transport, scope)] = list
	}
	var problems []error
	for place, list := range all {
		if len(list) == 0 {
			problems = append(problems, fmt.Errorf("%s: must have a requirement such as {\"type\": %q}", place, reject))
		}
		for i := range list {
			if err := list[i].check(); err != nil {
				problems = append(problems, fmt.Errorf("%s[%d]: %w", place, i, err))
			}
		}
	}
	return errors.Join(problems...)
}

// Signatures returns an image's signatures.
type Signatures func() ([][]byte, error)

// Allow returns an error unless the image with the given digest meets all requirements of the most
// specific scope. It reads the signatures only if a requirement needs them.
func (p *Policy) Allow(name reference.Named, digest string, signatures Signatures) error {
	for _, requirement := range p.of(name) {
		if err := requirement.allow(name, digest, signatures); err != nil {
			return err
		}
	}
	return nil
}

// of returns the requirements for an image.
func (p *Policy) of(name reference.Named) []requirement {
	for _, scope := range scopes(name) {
		if list, ok := p.scopes[scope]; ok {
			return list
		}
	}
	return p.general
}

// scopes returns an image's scopes, most specific first: the image, its repository, the
// repository's parent paths, the registry, its parent domains, and all images.
func scopes(name reference.Named) []string {
	list := []string{name.String()}
	for scope := name.Name(); ; {
		list = append(list, scope)
		at := strings.LastIndex(scope, "/")
		if at < 0 {
			break
		}
		scope = scope[:at]
	}
	domain, _, _ := strings.Cut(reference.Domain(name), ":")
	for {
		_, after, ok := strings.Cut(domain, ".")
		if !ok {
			return append(list, "")
		}
		list, domain = append(list, "*."+after), after
	}
}
