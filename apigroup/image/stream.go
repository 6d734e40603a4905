package image

import (
	"context"
	"fmt"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/apiserver"
)

// streams maintains the history of image stream tags. If a tag refers to another tag or to an image
// in a stream, the current image of its target becomes the tag's newest image.
type streams struct {
	options Options
	deps    apiserver.Deps
	store   *registry.Store
	limits  limits
}

func (s *streams) adjust(deps apiserver.Deps, store *registry.Store) {
	s.deps, s.store, s.limits = deps, store, newLimits(deps)
}

// prepare sets the generation of changed tags, and resolves them. It sorts tags by name, as in
// OpenShift 3, which stored tags in maps.
func (s *streams) prepare(ctx context.Context, stream, old *imagev1.ImageStream) {
	generation := int64(1)
	if old != nil {
		generation = old.Generation + 1
		stream.Status = *old.Status.DeepCopy()
		forget(stream, old)
	}
	if s.options.Registry != "" {
		path := "/" + request.NamespaceValue(ctx) + "/" + stream.Name
		stream.Status.DockerImageRepository = s.options.Registry + path
		stream.Status.PublicDockerImageRepository = ""
		if s.options.PublicRegistry != "" {
			stream.Status.PublicDockerImageRepository = s.options.PublicRegistry + path
		}
	}
	slices.SortStableFunc(stream.Spec.Tags, func(a, b imagev1.TagReference) int { return strings.Compare(a.Name, b.Name) })
	for i := range stream.Spec.Tags {
		tag := &stream.Spec.Tags[i]
		before := specTag(old, tag.Name)
		if before != nil && sameTarget(before, tag) && tag.Generation != nil {
			continue
		}
		tag.Generation = &generation
		if event := s.resolve(ctx, stream, tag); event != nil {
			event.Generation = generation
			addEvent(stream, tag.Name, *event)
			followers(stream, tag.Name, *event, map[string]bool{})
		}
	}
	if change, ok := ctx.Value(statusKey{}).(func(*imagev1.ImageStream)); ok {
		change(stream)
	}
	slices.SortStableFunc(stream.Status.Tags, func(a, b imagev1.NamedTagEventList) int { return strings.Compare(a.Tag, b.Tag) })
}

// validate validates a stream, including the user's access to the targets of the stream's tags.
func (s *streams) validate(ctx context.Context, stream, old *imagev1.ImageStream) field.ErrorList {
	problems := slices.Concat(validateStream(ctx, stream, old), s.options.checkRepository(stream, old), s.options.checkTags(stream, old), s.options.checkHistory(stream, old), s.limits.checkStream(stream, old),
		s.checkTaken(ctx, stream, old))
	for i := range stream.Spec.Tags {
		tag := &stream.Spec.Tags[i]
		if before := specTag(old, tag.Name); before != nil && sameTarget(before, tag) {
			continue
		}
		if from := tag.From; from != nil && from.Kind != dockerKind && from.Namespace != "" && from.Namespace != stream.Namespace {
			name, _, _ := strings.Cut(strings.ReplaceAll(from.Name, "@", ":"), ":")
			if !s.may(ctx, from.Namespace, name) {
				problems = append(problems, field.Forbidden(field.NewPath("spec", "tags").Key(tag.Name).Child("from"),
					fmt.Sprintf("you may not pull from %s/%s", from.Namespace, name)))
			}
		}
	}
	return problems
}

func (s *streams) validateStatus(ctx context.Context, stream, old *imagev1.ImageStream) field.ErrorList {
	return slices.Concat(validateStreamStatus(ctx, stream, old), s.options.checkHistory(stream, old), s.limits.checkStream(stream, old))
}

// forget deletes the history of tags that the user has removed.
func forget(stream, old *imagev1.ImageStream) {
	stream.Status.Tags = slices.DeleteFunc(stream.Status.Tags, func(list imagev1.NamedTagEventList) bool {
		return specTag(old, list.Tag) != nil && specTag(stream, list.Tag) == nil
	})
}

// sameTarget reports whether two versions of a tag have the same target.
func sameTarget(before, now *imagev1.TagReference) bool {
	if before.From == nil || now.From == nil {
		return before.From == now.From
	}
	return *before.From == *now.From && before.Reference == now.Reference
}

// resolve returns the image that a stream's tag refers to, or nil. It returns nil for external
// images, which an import resolves, and for streams that the user cannot pull from. A reference tag
// also resolves to the image, but keeps the pull spec of the source: see [pull.Spec]. For a
// reference to an external image, the result contains only the pull spec.
func (s *streams) resolve(ctx context.Context, stream *imagev1.ImageStream, tag *imagev1.TagReference) *imagev1.TagEvent {
	from := tag.From
	switch {
	case from == nil, from.Kind == dockerKind && !tag.Reference:
		return nil
	case from.Kind == dockerKind:
		return newEvent(imagev1.TagEvent{DockerImageReference: from.Name})
	}
	namespace, name, rest := targetOf(stream, from)
	source := stream
	if name != stream.Name || namespace != stream.Namespace {
		if source = s.read(ctx, namespace, name, stream.Namespace); source == nil {
			return nil
		}
	}
	if from.Kind == tagKind {
		if items := history(source, rest); len(items) > 0 {
			return newEvent(items[0])
		}
		return nil
	}
	for _, list := range source.Status.Tags {
		for _, event := range list.Items {
			if event.Image == rest {
				return newEvent(event)
			}
		}
	}
	return nil
}

// targetOf returns the stream that a tag refers to, and the tag or image in that stream.
func targetOf(stream *imagev1.ImageStream, from *corev1.ObjectReference) (namespace, name, rest string) {
	namespace = from.Namespace
	if namespace == "" {
		namespace = stream.Namespace
	}
	name, rest, ok := strings.Cut(from.Name, map[string]string{tagKind: ":", imageKind: "@"}[from.Kind])
	if !ok { // a name without a stream is a tag of the same stream
		return namespace, stream.Name, from.Name
	}
	return namespace, name, rest
}

// read returns the stream namespace/name, which a stream in the given project refers to. It returns
// nil if the stream does not exist or if the user cannot pull from it.
func (s *streams) read(ctx context.Context, namespace, name, project string) *imagev1.ImageStream {
	if namespace != project && !s.may(ctx, namespace, name) {
		return nil
	}
	object, err := s.store.Get(request.WithNamespace(ctx, namespace), name, &metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return object.(*imagev1.ImageStream)
}

// may reports whether the user can pull from another project's stream.
func (s *streams) may(ctx context.Context, namespace, name string) bool {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return false
	}
	may, err := pull.Authorized(s.deps.Authorizer)(ctx, user, pull.Get, namespace, name)
	return may && err == nil
}

func newEvent(event imagev1.TagEvent) *imagev1.TagEvent {
	return &imagev1.TagEvent{Created: metav1.Now(), DockerImageReference: event.DockerImageReference, Image: event.Image}
}

// addEvent adds an image to a tag's history as the newest image, and reports whether the status has
// changed. If the image is already the newest image, addEvent only updates the generation.
func addEvent(stream *imagev1.ImageStream, tag string, event imagev1.TagEvent) bool {
	for i := range stream.Status.Tags {
		list := &stream.Status.Tags[i]
		if list.Tag != tag {
			continue
		}
		if len(list.Items) > 0 && list.Items[0].Image == event.Image && list.Items[0].DockerImageReference == event.DockerImageReference {
			changed := list.Items[0].Generation < event.Generation
			list.Items[0].Generation = max(list.Items[0].Generation, event.Generation)
			return changed
		}
		list.Items = append([]imagev1.TagEvent{event}, list.Items...)
		return true
	}
	stream.Status.Tags = append(stream.Status.Tags, imagev1.NamedTagEventList{Tag: tag, Items: []imagev1.TagEvent{event}})
	return true
}

// history returns a tag's events, newest first, or nil.
func history(stream *imagev1.ImageStream, tag string) []imagev1.TagEvent {
	if stream == nil {
		return nil
	}
	for _, list := range stream.Status.Tags {
		if list.Tag == tag {
			return list.Items
		}
	}
	return nil
}

// specTag returns a tag in the spec, or nil.
func specTag(stream *imagev1.ImageStream, name string) *imagev1.TagReference {
	if stream == nil {
		return nil
	}
	for i := range stream.Spec.Tags {
		if stream.Spec.Tags[i].Name == name {
			return &stream.Spec.Tags[i]
		}
	}
	return nil
}
