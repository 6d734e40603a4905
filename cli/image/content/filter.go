package content

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"text/tabwriter"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/pflag"
)

// filter selects the images of an index whose platform, such as linux/arm64/v8, matches a regular
// expression.
type filter struct {
	text  string
	match *regexp.Regexp
}

func (f *filter) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.text, "filter-by-os", "", "Select the images of a manifest list whose OS/ARCHITECTURE[/VARIANT] matches this regular expression.")
}

func (f *filter) complete() (err error) {
	if f.text == "" {
		return nil
	}
	if f.match, err = regexp.Compile(f.text); err != nil {
		return fmt.Errorf("--filter-by-os is not a regular expression: %w", err)
	}
	return nil
}

// includes reports whether a filter selects an index entry. Without a pattern, the filter selects
// all entries.
func (f *filter) includes(entry v1.Descriptor) bool {
	if f.match == nil {
		return true
	}
	return entry.Platform != nil && f.match.MatchString(platform(entry))
}

// platform returns an entry's platform as OS/ARCHITECTURE[/VARIANT].
func platform(entry v1.Descriptor) string {
	if entry.Platform == nil {
		return "unknown"
	}
	text, _, _ := strings.Cut(entry.Platform.String(), ":")
	return text
}

// among returns the index, the entries that the filter selects, and all entries.
func (f *filter) among(desc *remote.Descriptor) (index v1.ImageIndex, manifests, all []v1.Descriptor, err error) {
	if index, err = desc.ImageIndex(); err != nil {
		return nil, nil, nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read manifest list %q: %w", desc.Digest, err)
	}
	for _, entry := range manifest.Manifests {
		if f.includes(entry) {
			manifests = append(manifests, entry)
		}
	}
	return index, manifests, manifest.Manifests, nil
}

// errSeveral is the error for a manifest list from which no single image can be selected.
type errSeveral struct {
	reason  string
	entries []v1.Descriptor
}

// Error returns a message that lists the images with their platforms and digests.
func (e errSeveral) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "the image is a manifest list and %s - use --filter-by-os to select from:\n\n", e.reason)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  OS\tDIGEST")
	for _, entry := range e.entries {
		fmt.Fprintf(table, "  %s\t%s\n", platform(entry), entry.Digest)
	}
	_ = table.Flush() // writing to memory cannot fail
	return text.String()
}

// single returns the image of a manifest. For a manifest list, it returns the only selected image.
// If isOwn is true, it returns the first selected image instead, and the default filter selects the
// images for Linux on this machine's architecture.
func (f *filter) single(desc *remote.Descriptor, isOwn bool) (v1.Image, error) {
	if !desc.MediaType.IsIndex() {
		if !desc.MediaType.IsImage() {
			return nil, fmt.Errorf("read image %q: media type %q is not an image of Docker schema 2 or OCI; push it again with a current client", desc.Digest, desc.MediaType)
		}
		return desc.Image()
	}
	index, manifests, all, err := f.among(desc)
	if err != nil {
		return nil, err
	}
	if isOwn && f.match == nil {
		manifests = nil
		for _, entry := range all {
			if entry.Platform != nil && entry.Platform.OS == "linux" && entry.Platform.Architecture == runtime.GOARCH {
				manifests = append(manifests, entry)
			}
		}
	}
	switch {
	case len(manifests) == 0:
		return nil, errSeveral{"has no matching image", all}
	case len(manifests) > 1 && !isOwn:
		return nil, errSeveral{"contains multiple images", manifests}
	}
	return index.Image(manifests[0].Digest)
}
