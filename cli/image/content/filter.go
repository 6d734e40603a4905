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

// filter chooses images of an index by their platform, such as linux/arm64/v8.
type filter struct {
	text  string
	match *regexp.Regexp
}

func (f *filter) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.text, "filter-by-os", "", "Of a manifest list only images whose OS/ARCHITECTURE[/VARIANT] matches this regular expression.")
}

func (f *filter) complete() (err error) {
	if f.text == "" {
		return nil
	}
	if f.match, err = regexp.Compile(f.text); err != nil {
		return fmt.Errorf("--filter-by-os is no regular expression: %w", err)
	}
	return nil
}

// includes reports whether an entry of an index is chosen. Without a filter each is.
func (f *filter) includes(entry v1.Descriptor) bool {
	if f.match == nil {
		return true
	}
	return entry.Platform != nil && f.match.MatchString(platform(entry))
}

// platform is OS/ARCHITECTURE[/VARIANT] of an entry.
func platform(entry v1.Descriptor) string {
	if entry.Platform == nil {
		return "unknown"
	}
	text, _, _ := strings.Cut(entry.Platform.String(), ":")
	return text
}

// among divides the entries of an index: those that are chosen, and all.
func (f *filter) among(found *remote.Descriptor) (index v1.ImageIndex, chosen, all []v1.Descriptor, err error) {
	if index, err = found.ImageIndex(); err != nil {
		return nil, nil, nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read manifest list %q: %w", found.Digest, err)
	}
	for _, entry := range manifest.Manifests {
		if f.includes(entry) {
			chosen = append(chosen, entry)
		}
	}
	return index, chosen, manifest.Manifests, nil
}

// errSeveral says that a manifest list is not one image.
type errSeveral struct {
	why     string
	entries []v1.Descriptor
}

// Error lists the images.
func (e errSeveral) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "the image is a manifest list and %s - use --filter-by-os to select from:\n\n", e.why)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  OS\tDIGEST")
	for _, entry := range e.entries {
		fmt.Fprintf(table, "  %s\t%s\n", platform(entry), entry.Digest)
	}
	_ = table.Flush() // memory takes everything
	return text.String()
}

// one gives the single image that a manifest is, or that is chosen of a manifest list. With own,
// the one for Linux on processors of this machine's kind is meant where no filter is given. What is
// neither an image nor a manifest list is an error.
func (f *filter) one(found *remote.Descriptor, own bool) (v1.Image, error) {
	if !found.MediaType.IsIndex() {
		if !found.MediaType.IsImage() {
			return nil, fmt.Errorf("read image %q: media type %q is no image of Docker schema 2 or OCI; push it again with a current client", found.Digest, found.MediaType)
		}
		return found.Image()
	}
	index, chosen, all, err := f.among(found)
	if err != nil {
		return nil, err
	}
	if own && f.match == nil {
		chosen = nil
		for _, entry := range all {
			if entry.Platform != nil && entry.Platform.OS == "linux" && entry.Platform.Architecture == runtime.GOARCH {
				chosen = append(chosen, entry)
			}
		}
	}
	switch {
	case len(chosen) == 0:
		return nil, errSeveral{"has no such image", all}
	case len(chosen) > 1 && !own:
		return nil, errSeveral{"contains multiple images", chosen}
	}
	return index.Image(chosen[0].Digest)
}
