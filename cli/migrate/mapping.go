package migrate

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
	registryname "github.com/google/go-containerregistry/pkg/name"
)

// docker returns the registry that Docker clients use for image names without a registry.
func docker() string {
	ref, _ := reference.ParseNormalizedNamed("any") // a name without a registry
	return reference.Domain(ref)
}

// mapping replaces an image's registry and name. In fromRegistry and fromName, * matches anything.
// In toRegistry and toName, * keeps the original value.
type mapping struct{ fromRegistry, fromName, toRegistry, toName string }

// parseMapping parses REGISTRY/NAME=REGISTRY/NAME.
func parseMapping(text string) (m mapping, err error) {
	from, to, match := strings.Cut(text, "=")
	var ok, okay bool
	m.fromRegistry, m.fromName, ok = strings.Cut(from, "/")
	m.toRegistry, m.toName, okay = strings.Cut(to, "/")
	wrong := func(reason string) (mapping, error) { return m, fmt.Errorf("mapping %q: %s", text, reason) }
	switch {
	case !match || !ok || !okay:
		return wrong("all arguments must be of the form REGISTRY/NAME=REGISTRY/NAME, where * stands for any")
	case m.fromRegistry == "" || m.fromName == "":
		return wrong("not a valid source: registry and name must be set")
	case m.toRegistry == "" || m.toName == "":
		return wrong("not a valid target: registry and name must be set")
	case m.toRegistry == "*" && m.toName == "*":
		return wrong("at least one change must be specified: the target */* keeps everything")
	case m.fromRegistry == m.toRegistry && m.fromName == m.toName:
		return wrong("at least one field must change")
	case strings.ContainsAny(strings.ReplaceAll(from+to, "*", ""), "@ ") || strings.ContainsAny(m.fromName+m.toName, ":"):
		return wrong("tags and digests cannot be replaced: remove them")
	}
	return m, nil
}

// official is the prefix of the names of Docker's official images, which users usually omit.
const official = "library/"

// replace returns the new registry and name, and whether the mapping matches.
func (m mapping) replace(registry, name string) (string, string, bool) {
	fits := m.fromName == "*" || m.fromName == name || registry == docker() && official+m.fromName == name
	if m.fromRegistry != "*" && m.fromRegistry != registry || !fits {
		return registry, name, false
	}
	if m.toRegistry != "*" {
		registry = m.toRegistry
	}
	if m.toName != "*" {
		name = m.toName
	}
	return registry, name, true
}

// mappings is a list of mappings, of which the first match applies.
type mappings []mapping

// image returns an image's new reference. It keeps the tag and the digest. If the image name
// contains no registry, Docker's registry applies.
func (all mappings) image(image string) string {
	registry, rest, ok := strings.Cut(image, "/")
	implicit := !ok || !strings.ContainsAny(registry, ".:") && registry != "localhost"
	if implicit {
		registry, rest = docker(), image
	}
	name, suffix := rest, ""
	if at := strings.IndexAny(rest, ":@"); at >= 0 {
		name, suffix = rest[:at], rest[at:]
	}
	for _, m := range all {
		toRegistry, toName, fits := m.replace(registry, name)
		switch {
		case !fits:
		case implicit && toRegistry == registry:
			return toName + suffix
		default:
			return toRegistry + "/" + toName + suffix
		}
	}
	return image
}

// account returns the new key for credentials. As in Docker's client configuration, the key is a
// registry, with or without https:// and a path.
func (all mappings) account(place string) string {
	bare := strings.TrimPrefix(strings.TrimPrefix(place, "https://"), "http://")
	registry, name, _ := strings.Cut(bare, "/")
	for _, version := range []string{"v1", "v2"} {
		if name == version {
			name = ""
		}
		name = strings.TrimPrefix(name, version+"/")
	}
	// Docker clients use this key for their default registry.
	if registry == registryname.DefaultRegistry {
		registry = docker()
	}
	for _, m := range all {
		toRegistry, toName, fits := m.replace(registry, name)
		if !fits {
			continue
		}
		if toName != "" {
			return toRegistry + "/" + toName
		}
		return toRegistry
	}
	return place
}
