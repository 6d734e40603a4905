// Package retention selects the images that pruning removes: unreferenced images that no rule
// keeps. `oc adm prune images` removes them, and the web console shows a preview.
//
// The callers set the rules. The defaults must be equal in cli/image/prune.go,
// apigroup/image/usage.go and the console's Images page.
package retention

import (
	"slices"
	"strings"
	"time"

	imagev1 "github.com/openshift/api/image/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// Rules defines which unreferenced images are kept.
type Rules struct {
	Revisions int           // number of newest entries to keep in each tag's history
	Younger   time.Duration // keep images, streams and history entries that are younger
	OverSize  bool          // ignore Revisions and Younger: remove only images that exceed a limit
	External  bool          // also remove images in other registries
	Namespace string        // prune only this project's history, or every project's if empty
}

// State contains the cluster's images and the references to them.
type State struct {
	Images     []imagev1.Image
	Streams    []imagev1.ImageStream
	References *References
	Limits     map[string]int64 // maximum size of an image in bytes, by project
}

// Garbage contains the unreferenced images, and the image streams whose history contains them.
type Garbage struct {
	Images  []imagev1.Image
	Streams []Shorter
}

// Shorter is an image stream whose history no longer contains the unreferenced images.
type Shorter struct {
	Stream           *imagev1.ImageStream
	Updated, Deleted []string // tags with a shortened history, and tags whose history is now empty
}

// Find returns the images that pruning removes. It keeps an image while an object, or a retained
// entry in a tag's history, refers to it.
func (k Rules) Find(s State, now time.Time) (existing Garbage) {
	byName := map[string]*imagev1.Image{}
	for i := range s.Images {
		byName[s.Images[i].Name] = &s.Images[i]
	}
	stays := map[string]bool{}
	for digest := range s.References.Images {
		stays[digest] = true
	}
	for i := range s.Streams {
		k.mark(&s.Streams[i], s, byName, now, stays)
	}
	going := map[string]bool{}
	for i := range s.Images {
		if image := &s.Images[i]; k.candidate(image, now) && !stays[image.Name] {
			going[image.Name] = true
		}
	}
	for i := range s.Images { // an index keeps the images that it contains
		if !going[s.Images[i].Name] {
			keepIndex(&s.Images[i], byName, going)
		}
	}
	for i := range s.Streams {
		if less, ok := without(&s.Streams[i], going); ok {
			existing.Streams = append(existing.Streams, less)
		}
	}
	for i := range s.Images {
		if going[s.Images[i].Name] {
			existing.Images = append(existing.Images, s.Images[i])
		}
	}
	return existing
}

// Unused returns the images in the garbage that no image stream of s contains, not even in its
// history.
func (g Garbage) Unused(s State) (images []imagev1.Image) {
	byName, going := map[string]*imagev1.Image{}, map[string]bool{}
	for i := range s.Images {
		byName[s.Images[i].Name] = &s.Images[i]
	}
	for _, image := range g.Images {
		going[image.Name] = true
	}
	for _, stream := range s.Streams {
		for _, tag := range stream.Status.Tags {
			for _, event := range tag.Items {
				delete(going, event.Image)
			}
		}
	}
	for i := range s.Images {
		if !going[s.Images[i].Name] {
			keepIndex(&s.Images[i], byName, going)
		}
	}
	return slices.DeleteFunc(slices.Clone(g.Images), func(image imagev1.Image) bool { return !going[image.Name] })
}

func keepIndex(image *imagev1.Image, byName map[string]*imagev1.Image, going map[string]bool) {
	for _, child := range image.DockerImageManifests {
		if going[child.Digest] {
			delete(going, child.Digest)
			keepIndex(byName[child.Digest], byName, going)
		}
	}
}

// candidate reports whether an image's age and origin allow its removal.
func (k Rules) candidate(image *imagev1.Image, now time.Time) bool {
	if !k.External && image.Annotations[record.Managed] != "true" {
		return false
	}
	return k.OverSize || now.Sub(image.CreationTimestamp.Time) >= k.Younger
}

// mark adds to stays the images that a stream keeps.
func (k Rules) mark(stream *imagev1.ImageStream, s State, byName map[string]*imagev1.Image, now time.Time, stays map[string]bool) {
	name := stream.Namespace + "/" + stream.Name
	all := k.Namespace != "" && k.Namespace != stream.Namespace || !k.OverSize && now.Sub(stream.CreationTimestamp.Time) < k.Younger
	for _, tag := range stream.Spec.Tags {
		if tag.From == nil {
			continue
		}
		if _, digest, ok := strings.Cut(tag.From.Name, "@"); ok && !k.OverSize && k.Revisions > 0 {
			stays[digest] = true
		}
	}
	for _, tag := range stream.Status.Tags {
		for i, event := range tag.Items {
			keep := all || i == 0 && len(s.References.Tags[name+":"+tag.Tag]) > 0
			if k.OverSize {
				keep = keep || !over(byName[event.Image], s.Limits, stream.Namespace)
			} else {
				keep = keep || i < k.Revisions || now.Sub(event.Created.Time) < k.Younger
			}
			if keep {
				stays[event.Image] = true
			}
		}
	}
}

// over reports whether an image is larger than the project's limit. It returns false if the project
// has no limit.
func over(image *imagev1.Image, limits map[string]int64, namespace string) bool {
	limit, limited := limits[namespace]
	if image == nil || !limited {
		return false
	}
	return SizeOf(image) > limit
}

// SizeOf returns the size of an image in bytes: the size in its metadata, or else the sum of its
// layer sizes.
func SizeOf(image *imagev1.Image) int64 {
	if metadata, err := record.Metadata(image); err == nil && metadata.Size > 0 {
		return metadata.Size
	}
	var size int64
	for _, layer := range image.DockerImageLayers {
		size += layer.LayerSize
	}
	return size
}

// without returns a copy of a stream without the images in going. ok is false if the stream
// contains none of the images.
func without(stream *imagev1.ImageStream, going map[string]bool) (less Shorter, ok bool) {
	less.Stream = stream.DeepCopy()
	isGone := func(event imagev1.TagEvent) bool { return going[event.Image] }
	status := &less.Stream.Status
	for i := range status.Tags {
		tag := &status.Tags[i]
		before := len(tag.Items)
		tag.Items = slices.DeleteFunc(tag.Items, isGone)
		switch {
		case len(tag.Items) == before:
		case len(tag.Items) == 0:
			less.Deleted = append(less.Deleted, tag.Tag)
		default:
			less.Updated = append(less.Updated, tag.Tag)
		}
	}
	status.Tags = slices.DeleteFunc(status.Tags, func(tag imagev1.NamedTagEventList) bool { return slices.Contains(less.Deleted, tag.Tag) })
	return less, len(less.Updated)+len(less.Deleted) > 0
}

// InRegistry returns the manifests and blobs to remove from the cluster's registry.
func InRegistry(images []imagev1.Image, streams []imagev1.ImageStream) (all []record.GarbageImage) {
	repositories := map[string][]string{}
	for _, stream := range streams {
		for _, tag := range stream.Status.Tags {
			for _, event := range tag.Items {
				name := stream.Namespace + "/" + stream.Name
				if names := repositories[event.Image]; !slices.Contains(names, name) {
					repositories[event.Image] = append(names, name)
				}
			}
		}
	}
	for i := range images {
		image := &images[i]
		in := repositories[image.Name]
		if parsed, err := record.ParseReference(image.DockerImageReference); err == nil && image.Annotations[record.Managed] == "true" && !slices.Contains(in, parsed.Repository) {
			in = append(in, parsed.Repository)
		}
		all = append(all, record.GarbageImage{Digest: image.Name, Repositories: in, Blobs: record.Blobs(image)})
	}
	return all
}
