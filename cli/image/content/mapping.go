package content

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// mapping is a source image and its destination. If the destination has no tag, the copied image
// can be pulled only by digest.
type mapping struct{ source, destination string }

// parseMappings parses SOURCE DESTINATION... or SOURCE=DESTINATION...
func parseMappings(args []string) (all []mapping, err error) {
	if len(args) == 0 {
		return nil, nil
	}
	if !strings.Contains(args[0], "=") {
		if len(args) < 2 {
			return nil, fmt.Errorf("%q has no destination: write SOURCE DESTINATION or SOURCE=DESTINATION", args[0])
		}
		for _, destination := range args[1:] {
			all = append(all, mapping{args[0], destination})
		}
	} else {
		for _, arg := range args {
			source, destination, ok := strings.Cut(arg, "=")
			if !ok {
				return nil, fmt.Errorf("%q must be SOURCE=DESTINATION, like the arguments before it", arg)
			}
			all = append(all, mapping{source, destination})
		}
	}
	for _, m := range all {
		if err := m.check(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// namesBucket reports whether a destination has the form HOST/REGION/BUCKET/REPOSITORY. As in image
// names, a host contains a dot or a port. Otherwise, the first component is part of a repository in
// the default registry.
func namesBucket(destination string) bool {
	parts := strings.SplitN(destination, "/", 4)
	return len(parts) == 4 && strings.ContainsAny(parts[0], ".:") && !slices.Contains(parts, "")
}

// check returns an error for invalid references.
func (m mapping) check() error {
	destination, inS3 := strings.CutPrefix(m.destination, s3Scheme)
	if inS3 && !namesBucket(destination) {
		return fmt.Errorf("destination %q must be s3://HOST/REGION/BUCKET/REPOSITORY:TAG, such as s3://s3.amazonaws.com/us-east-1/images/app:v1", m.destination)
	}
	for _, side := range []string{m.source, destination} {
		if scheme, _, ok := strings.Cut(side, "://"); ok {
			return fmt.Errorf("%q: images can be copied from registries to registries or s3://, but not to or from %s://", side, scheme)
		}
		if strings.ContainsAny(side, "= ") || side == "" {
			return fmt.Errorf("%q=%q must be SOURCE=DESTINATION, each an image of a registry", m.source, m.destination)
		}
	}
	if strings.Contains(m.destination, "@") {
		return fmt.Errorf("destination %q must not have a digest: set a tag, or omit the tag to copy the image by its digest only", m.destination)
	}
	if !hasTag(m.source) {
		return fmt.Errorf("source %q: set a tag or a digest", m.source)
	}
	if strings.Contains(m.source, "*") && hasTag(m.destination) {
		return fmt.Errorf("destination %q must not have a tag, because the source %q matches several tags", m.destination, m.source)
	}
	return nil
}

// hasTag reports whether a reference has a tag or a digest.
func hasTag(reference string) bool {
	return strings.ContainsAny(path.Base(reference), ":@")
}

// readMappings reads a file with one or more mappings per line. "-" means standard input. Text
// after # is a comment.
func readMappings(file string, in io.Reader) (all []mapping, err error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read images to copy: %w", err)
		}
		defer f.Close()
		in = f
	}
	lines := bufio.NewScanner(in)
	var problems []error
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		mappings, err := parseMappings(strings.Fields(text))
		if err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %w", file, number, err))
		}
		all = append(all, mappings...)
	}
	if err := lines.Err(); err != nil {
		problems = append(problems, fmt.Errorf("read images to copy from %q: %w", file, err))
	}
	return all, errors.Join(problems...)
}

// expand replaces each mapping whose source tag contains * with mappings for all matching tags in
// the repository. Each destination has the same tag as its source.
func (r *registries) expand(all []mapping) (expanded []mapping, err error) {
	for _, m := range all {
		at := strings.LastIndex(m.source, ":")
		if !strings.Contains(m.source, "*") || strings.Contains(m.source, "@") || at < strings.LastIndex(m.source, "/") {
			expanded = append(expanded, m)
			continue
		}
		pattern := m.source[at+1:]
		repository, err := name.NewRepository(m.source[:at], r.names...)
		if err != nil {
			return nil, err
		}
		tags, err := remote.List(repository, r.options...)
		if err != nil {
			return nil, explain("list tags of", repository.Name(), err)
		}
		slices.Sort(tags)
		count := len(expanded)
		for _, tag := range tags {
			matches, err := path.Match(pattern, tag)
			if err != nil {
				return nil, fmt.Errorf("read tag %q: %w", pattern, err)
			}
			if matches {
				expanded = append(expanded, mapping{m.source[:at+1] + tag, m.destination + ":" + tag})
			}
		}
		if len(expanded) == count {
			return nil, fmt.Errorf("source %q: none of the repository's %d tags matches", m.source, len(tags))
		}
	}
	return expanded, nil
}
