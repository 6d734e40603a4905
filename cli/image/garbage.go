package image

import (
	"slices"
	"strings"
	"time"

	imagev1 "github.com/openshift/api/image/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// retention defines which unreferenced images are kept.
type retention struct {
	revisions int           // number of newest entries to keep in each tag's history
	younger   time.Duration // keep images, streams and history entries that are younger
	overSize  bool          // ignore both: remove only images that exceed a project's limit
	external  bool          // also remove images in other registries
	namespace string        // prune only the history of this project, or of all if empty
}

// state contains the images of the cluster and the references to them.
type state struct {
	images  []imagev1.Image
	streams []imagev1.ImageStream
	refs    *references
	limits  map[string]int64 // maximum size of an image in bytes, by project
}

// garbage contains the unreferenced images, and the image streams whose history contains them.
type garbage struct {
	images  []imagev1.Image
	streams []shorter
}

// shorter is an image stream without the unreferenced images in its history.
type shorter struct {
	stream           *imagev1.ImageStream
	updated, deleted []string // tags with a shorter history, and tags without any
}

// find returns the garbage. It keeps an image as long as an object or an entry in a tag's history
// that must stay refers to it.
func (k retention) find(s state, now time.Time) (existing garbage) {
	byName := map[string]*imagev1.Image{}
	for i := range s.images {
		byName[s.images[i].Name] = &s.images[i]
	}
	stays := map[string]bool{}
	for digest := range s.refs.images {
		stays[digest] = true
	}
	for i := range s.streams {
		k.mark(&s.streams[i], s, byName, now, stays)
	}
	going := map[string]bool{}
	for i := range s.images {
		if image := &s.images[i]; k.candidate(image, now) && !stays[image.Name] {
			going[image.Name] = true
		}
	}
	for i := range s.images { // an index keeps its images
		if !going[s.images[i].Name] {
			keepIndex(&s.images[i], byName, going)
		}
	}
	for i := range s.streams {
		if less, ok := without(&s.streams[i], going); ok {
			existing.streams = append(existing.streams, less)
		}
	}
	for i := range s.images {
		if going[s.images[i].Name] {
			existing.images = append(existing.images, s.images[i])
		}
	}
	return existing
}

// imagesOf returns the images in the garbage that no image stream of s contains, not even in its
// history.
func (g garbage) imagesOf(s state) (images []imagev1.Image) {
	byName, going := map[string]*imagev1.Image{}, map[string]bool{}
	for i := range s.images {
		byName[s.images[i].Name] = &s.images[i]
	}
	for _, image := range g.images {
		going[image.Name] = true
	}
	for _, stream := range s.streams {
		for _, tag := range stream.Status.Tags {
			for _, event := range tag.Items {
				delete(going, event.Image)
			}
		}
	}
	for i := range s.images {
		if !going[s.images[i].Name] {
			keepIndex(&s.images[i], byName, going)
		}
	}
	return slices.DeleteFunc(slices.Clone(g.images), func(image imagev1.Image) bool { return !going[image.Name] })
}

func keepIndex(image *imagev1.Image, byName map[string]*imagev1.Image, going map[string]bool) {
	for _, child := range image.DockerImageManifests {
		if going[child.Digest] {
			delete(going, child.Digest)
			keepIndex(byName[child.Digest], byName, going)
		}
	}
}

// candidate reports whether the age and the origin of an image allow its removal.
func (k retention) candidate(image *imagev1.Image, now time.Time) bool {
	if !k.external && image.Annotations[record.Managed] != "true" {
		return false
	}
	return k.overSize || now.Sub(image.CreationTimestamp.Time) >= k.younger
}

// mark adds the images that a stream keeps to stays.
func (k retention) mark(stream *imagev1.ImageStream, s state, byName map[string]*imagev1.Image, now time.Time, stays map[string]bool) {
	name := stream.Namespace + "/" + stream.Name
	all := k.namespace != "" && k.namespace != stream.Namespace || !k.overSize && now.Sub(stream.CreationTimestamp.Time) < k.younger
	for _, tag := range stream.Spec.Tags {
		if tag.From == nil {
			continue
		}
		if _, digest, ok := strings.Cut(tag.From.Name, "@"); ok && !k.overSize && k.revisions > 0 {
			stays[digest] = true
		}
	}
	for _, tag := range stream.Status.Tags {
		for i, event := range tag.Items {
			keep := all || i == 0 && len(s.refs.tags[name+":"+tag.Tag]) > 0
			if k.overSize {
				keep = keep || !over(byName[event.Image], s.limits, stream.Namespace)
			} else {
				keep = keep || i < k.revisions || now.Sub(event.Created.Time) < k.younger
			}
			if keep {
				stays[event.Image] = true
			}
		}
	}
}

// over reports whether an image is larger than the limit of a project, if that has a limit.
func over(image *imagev1.Image, limits map[string]int64, namespace string) bool {
	limit, limited := limits[namespace]
	if image == nil || !limited {
		return false
	}
	return sizeOf(image) > limit
}

// sizeOf returns the size of an image in bytes, from its metadata, or else the sum of its layers.
func sizeOf(image *imagev1.Image) int64 {
	if metadata, err := record.Metadata(image); err == nil && metadata.Size > 0 {
		return metadata.Size
	}
	var size int64
	for _, layer := range image.DockerImageLayers {
		size += layer.LayerSize
	}
	return size
}

// without returns a copy of a stream without the images in going. ok is false if it contains none
// of them.
func without(stream *imagev1.ImageStream, going map[string]bool) (less shorter, ok bool) {
	less.stream = stream.DeepCopy()
	isGone := func(event imagev1.TagEvent) bool { return going[event.Image] }
	status := &less.stream.Status
	for i := range status.Tags {
		tag := &status.Tags[i]
		before := len(tag.Items)
		tag.Items = slices.DeleteFunc(tag.Items, isGone)
		switch {
		case len(tag.Items) == before:
		case len(tag.Items) == 0:
			less.deleted = append(less.deleted, tag.Tag)
		default:
			less.updated = append(less.updated, tag.Tag)
		}
	}
	status.Tags = slices.DeleteFunc(status.Tags, func(tag imagev1.NamedTagEventList) bool { return slices.Contains(less.deleted, tag.Tag) })
	return less, len(less.updated)+len(less.deleted) > 0
}

// inRegistry returns the manifests and blobs of images for removal from the cluster's registry.
func inRegistry(images []imagev1.Image, streams []imagev1.ImageStream) (all []record.GarbageImage) {
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
