// Package signaturestore reads image signatures from signature stores, which are servers or
// directories that contain signatures for images in registries. It does not verify signatures.
//
// Source: containers-registries.d(5) for the files, and the documentation of
// github.com/containers/image for the layout of a store.
package signaturestore

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Stores contains the signature stores that the registries.d files in a directory define.
type Stores struct {
	general string            // default store; can be empty
	byName  map[string]string // by registry, or registry and prefix of a repository
}

// place is a store's location. OpenShift 3 calls the field Sigstore.
type place struct {
	Lookaside string `json:"lookaside"`
	Sigstore  string `json:"sigstore"`
}

func (p *place) address() string {
	if p == nil {
		return ""
	}
	if p.Lookaside != "" {
		return p.Lookaside
	}
	return p.Sigstore
}

// Read reads the files in a directory whose names end with .yaml. If the directory does not exist,
// it returns no stores.
func Read(directory string) (*Stores, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", directory, err)
	}
	stores := &Stores{byName: map[string]string{}}
	from := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read signature stores: %w", err)
		}
		var content struct {
			General *place            `json:"default-docker"`
			Docker  map[string]*place `json:"docker"`
		}
		if err := yaml.Unmarshal(text, &content); err != nil {
			return nil, fmt.Errorf("parse signature stores %q: %w", file, err)
		}
		all := map[string]string{}
		if content.General != nil {
			all[""] = content.General.address()
		}
		for name, place := range content.Docker {
			all[name] = place.address()
		}
		for name, address := range all {
			if other, ok := from[name]; ok {
				return nil, fmt.Errorf("read signature stores: %q and %q both set the store of %q; remove it from one of them", other, file, name)
			}
			from[name] = file
			if err := valid(address); err != nil {
				return nil, fmt.Errorf("parse signature stores %q: %w", file, err)
			}
			if address != "" {
				stores.byName[name] = address
			}
		}
	}
	stores.general = stores.byName[""]
	delete(stores.byName, "")
	return stores, nil
}

// valid returns an error if a store's address is invalid. An empty address is valid and means that
// no store is used.
func valid(address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	if address != "" && !slices.Contains([]string{"http", "https", "file"}, parsed.Scheme) {
		return fmt.Errorf("address %q: must begin with https://, http:// or file://", address)
	}
	return nil
}

// Empty reports whether no stores are defined.
func (s *Stores) Empty() bool { return s.general == "" && len(s.byName) == 0 }

// Address returns the URL of an image's signatures, without the number at its end, or "" if the
// image has no store. The most specific store applies.
func (s *Stores) Address(registry, repository, digest string) string {
	store := s.of(registry, repository)
	if store == "" {
		return ""
	}
	return strings.TrimSuffix(store, "/") + "/" + repository + "@" + strings.Replace(digest, ":", "=", 1) + "/signature-"
}

func (s *Stores) of(registry, repository string) string {
	for name := registry + "/" + repository; name != ""; {
		if store, ok := s.byName[name]; ok {
			return store
		}
		at := strings.LastIndex(name, "/")
		name = name[:max(at, 0)]
	}
	for domain := registry; domain != ""; { // try the patterns *.example.com, *.com
		_, after, _ := strings.Cut(domain, ".")
		if store, ok := s.byName["*."+after]; ok && after != "" {
			return store
		}
		domain = after
	}
	return s.general
}
