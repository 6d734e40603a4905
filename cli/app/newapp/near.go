package newapp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	imagev1 "github.com/openshift/api/image/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Match is an image stream or a template whose name resembles an argument.
type Match struct {
	// Kind is the flag that selects the object: image-stream or template.
	Kind          string
	Project, Name string
	// Tag is the tag to use if the user specifies only the name of the image stream.
	Tag string
}

// String describes the match as OpenShift 3's client does.
func (m Match) String() string {
	title := map[string]string{"image-stream": "Image stream", "template": "Template"}[m.Kind]
	if m.Tag != "" {
		title = fmt.Sprintf("%s %q (tag %q)", title, m.Name, m.Tag)
	} else {
		title = fmt.Sprintf("%s %q", title, m.Name)
	}
	return fmt.Sprintf("* %s in project %q\n  Use --%s=\"%s/%s\" to specify this image or template", title, m.Project, m.Kind, m.Project, m.Name)
}

// PartialMatch is the error for a name without an exact match. Matches is never empty and is sorted
// by similarity, most similar first.
type PartialMatch struct {
	Name    string
	Matches []Match
}

// Error returns a message that contains the best match and, for each match, the flag that selects
// it.
func (p *PartialMatch) Error() string {
	texts := make([]string, len(p.Matches))
	for i, match := range p.Matches {
		texts[i] = match.String()
	}
	best := p.Matches[0]
	return fmt.Sprintf("only a partial match was found for %q: %q\n\nThe argument %[1]q only partially matched the following Docker image, OpenShift image stream, or template:\n\n%[3]s",
		p.Name, best.Project+"/"+best.Name, strings.Join(texts, "\n\n"))
}

const (
	maxMatches = 5
	// maxListed is the maximum number of available names that an error lists.
	maxListed = 20
)

// missed returns the error for a name that Find could not resolve: PartialMatch if there are
// similar names, otherwise NotFound.
func (f *Finder) missed(ctx context.Context, component Component) error {
	if component.Kind == ImageKind {
		return &NotFound{Name: component.From}
	}
	all := f.available(ctx, component.Kind)
	reference, _ := tagged(component.From)
	// Without projects, the name can only refer to an image in a registry.
	if projects, _ := f.projects(reference); len(projects) == 0 {
		return &NotFound{Name: component.From}
	}
	desired := strings.ToLower(reference[strings.LastIndex(reference, "/")+1:])
	var near []Match
	for _, match := range all {
		if similar(desired, match.Name) {
			near = append(near, match)
		}
	}
	if len(near) == 0 {
		return &NotFound{Name: component.From, Available: all}
	}
	slices.SortStableFunc(near, func(a, b Match) int {
		return cmp.Compare(levenshtein.Distance(desired, a.Name, nil), levenshtein.Distance(desired, b.Name, nil))
	})
	return &PartialMatch{Name: component.From, Matches: near[:min(len(near), maxMatches)]}
}

// similar reports whether name starts with desired, or differs from it by one typo. It returns
// false if the names are equal or desired has only one or two bytes.
func similar(desired, name string) bool {
	const shortest, long = 3, 5
	switch distance := levenshtein.Distance(desired, name, nil); {
	case desired == name || len(desired) < shortest:
		return false
	case strings.HasPrefix(name, desired) || distance == 1:
		return true
	default:
		return distance == 2 && len(desired) >= long // a swap of two letters has distance 2
	}
}

// available returns the image streams and templates that the user can list. It ignores errors,
// because the result only supplements an error message.
func (f *Finder) available(ctx context.Context, kind Kind) (all []Match) {
	for _, project := range slices.Compact([]string{f.Namespace, openshift}) {
		if list, err := f.Images.ImageStreams(project).List(ctx, metav1.ListOptions{}); err == nil && (kind == AnyKind || kind == StreamKind) {
			for _, stream := range list.Items {
				all = append(all, Match{"image-stream", project, stream.Name, defaultTag(&stream)})
			}
		}
		if list, err := f.Templates.Templates(project).List(ctx, metav1.ListOptions{}); err == nil && (kind == AnyKind || kind == TemplateKind) {
			for _, template := range list.Items {
				all = append(all, Match{"template", project, template.Name, ""})
			}
		}
	}
	return all
}

// listed returns the sorted names of at most maxListed matches, for an error message.
func listed(all []Match) string {
	var names []string
	for _, match := range all {
		names = append(names, match.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxListed {
		names = append(names[:maxListed], "...")
	}
	return strings.Join(names, ", ")
}

// defaultTag resolves the tag latest by following its references to other tags of the stream.
func defaultTag(stream *imagev1.ImageStream) string {
	tag := latest
	for range stream.Spec.Tags { // a chain of references contains each tag at most once
		at := slices.IndexFunc(stream.Spec.Tags, func(t imagev1.TagReference) bool { return t.Name == tag })
		if at < 0 || stream.Spec.Tags[at].From == nil || stream.Spec.Tags[at].From.Kind != "ImageStreamTag" || strings.Contains(stream.Spec.Tags[at].From.Name, ":") {
			break
		}
		tag = stream.Spec.Tags[at].From.Name
	}
	return tag
}
