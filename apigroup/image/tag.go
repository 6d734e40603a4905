package image

import (
	"context"
	"slices"

	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apiserver"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
)

// streamTags serves the imagestreamtags resource, whose objects are named "stream:tag" and contain
// a tag's target and image. Updating a tag updates its stream.
type streamTags struct {
	view
	rest.TableConvertor
}

var (
	_ rest.Getter               = &streamTags{}
	_ rest.Lister               = &streamTags{}
	_ rest.CreaterUpdater       = &streamTags{}
	_ rest.GracefulDeleter      = &streamTags{}
	_ rest.SingularNameProvider = &streamTags{}
	_ rest.ShortNamesProvider   = &streamTags{}
)

func tagTable() rest.TableConvertor {
	return apiserver.Table([]apiserver.Column[*imagev1.ImageStreamTag]{
		{Name: "Docker Ref", Description: "Location of the image in a registry", Value: func(t *imagev1.ImageStreamTag) any { return t.Image.DockerImageReference }},
		{Name: "Updated", Description: "When the tag last changed", Value: func(t *imagev1.ImageStreamTag) any {
			return apiserver.Since(t.CreationTimestamp) + " ago"
		}},
	})
}

// New implements rest.Storage.
func (*streamTags) New() runtime.Object { return &imagev1.ImageStreamTag{} }

// NewList implements rest.Lister.
func (*streamTags) NewList() runtime.Object { return &imagev1.ImageStreamTagList{} }

// GetSingularName implements rest.SingularNameProvider.
func (*streamTags) GetSingularName() string { return "imagestreamtag" }

// ShortNames implements rest.ShortNamesProvider.
func (*streamTags) ShortNames() []string { return []string{"istag"} }

// Get returns a tag with its image. As in OpenShift 3.11, it returns a not-found error for a tag
// without an image. A client can therefore wait until the image has been imported or pushed.
func (t *streamTags) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	tag, err := t.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if !hasImage(tag.(*imagev1.ImageStreamTag)) {
		return nil, apierrors.NewNotFound(imagev1.Resource("imagestreamtags"), name)
	}
	return tag, nil
}

// hasImage reports whether a tag has an image. A reference to an external image contains only the
// image's pull spec.
func hasImage(tag *imagev1.ImageStreamTag) bool {
	return tag.Image.Name != "" || tag.Image.DockerImageReference != "" && (tag.Tag == nil || !tag.Tag.Reference)
}

// find returns a tag, with or without an image. A tag with neither a target nor a history does not
// exist.
func (t *streamTags) find(ctx context.Context, name string) (runtime.Object, error) {
	streamName, tag, err := split(name, ":", "imageStreamTag")
	if err != nil {
		return nil, err
	}
	stream, err := t.stream(ctx, streamName)
	if err != nil {
		return nil, err
	}
	return t.tag(ctx, stream, tag)
}

func (t *streamTags) tag(ctx context.Context, stream *imagev1.ImageStream, name string) (*imagev1.ImageStreamTag, error) {
	tag, event, err := summary(stream, name)
	if err == nil && event != nil {
		tag.Image, err = t.image(ctx, *event)
	}
	return tag, err
}

// summary returns a tag whose image contains only the name and the pull spec, and the tag's latest
// event. event is nil if the tag has no image yet.
func summary(stream *imagev1.ImageStream, name string) (tag *imagev1.ImageStreamTag, event *imagev1.TagEvent, err error) {
	reference, events := specTag(stream, name), history(stream, name)
	if reference == nil && len(events) == 0 {
		return nil, nil, apierrors.NewNotFound(imagev1.Resource("imagestreamtags"), stream.Name+":"+name)
	}
	tag = &imagev1.ImageStreamTag{
		ObjectMeta: metadata(stream, stream.Name+":"+name, stream.CreationTimestamp),
		Tag:        reference.DeepCopy(), LookupPolicy: stream.Spec.LookupPolicy,
	}
	if reference != nil {
		tag.Annotations = reference.Annotations
	}
	for _, list := range stream.Status.Tags {
		if list.Tag == name {
			tag.Conditions = list.Conditions
		}
	}
	if len(events) == 0 {
		return tag, nil, nil
	}
	latest := events[0]
	tag.Generation, tag.CreationTimestamp = latest.Generation, latest.Created
	latest.DockerImageReference = pull.Spec(stream, name, latest)
	tag.Image = bareImage(latest)
	return tag, &latest, nil
}

// List returns the tags with an image in all streams of a namespace, or of all namespaces, sorted
// by name. As in OpenShift 3.11, the images contain only the name and the pull spec. Otherwise, a
// list could be a thousand times as large as the images, because many tags can have the same image.
func (t *streamTags) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	list := &imagev1.ImageStreamTagList{}
	version, err := t.each(ctx, options, func(stream *imagev1.ImageStream, name string) error {
		tag, _, err := summary(stream, name)
		if err == nil && hasImage(tag) {
			list.Items = append(list.Items, *tag)
		}
		return err
	})
	list.ResourceVersion = version
	return list, err
}

// each calls visit for all tags that match options, across all streams. It returns the list's
// resource version.
func (t *streamTags) each(ctx context.Context, options *metainternalversion.ListOptions, visit func(stream *imagev1.ImageStream, name string) error) (version string, err error) {
	object, err := t.streams.List(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		return "", err
	}
	streams := object.(*imagev1.ImageStreamList)
	for i := range streams.Items {
		stream := &streams.Items[i]
		if options != nil && options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(stream.Labels)) {
			continue
		}
		for _, name := range names(stream) {
			if options != nil && options.FieldSelector != nil &&
				!options.FieldSelector.Matches(fields.Set{"metadata.name": stream.Name + ":" + name, "metadata.namespace": stream.Namespace}) {
				continue
			}
			if err := visit(stream, name); err != nil {
				return "", err
			}
		}
	}
	return streams.ResourceVersion, nil
}

func names(stream *imagev1.ImageStream) []string {
	var all []string
	for _, tag := range stream.Status.Tags {
		all = append(all, tag.Tag)
	}
	for _, tag := range stream.Spec.Tags {
		all = append(all, tag.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Create adds a tag to a stream. If the stream is missing, it creates the stream. It returns an
// error if the tag exists.
func (t *streamTags) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	tag := object.(*imagev1.ImageStreamTag)
	streamName, name, err := t.check(tag)
	if err != nil {
		return nil, err
	}
	tag.Namespace = request.NamespaceValue(ctx)
	if len(tag.Annotations) == 0 {
		tag.Annotations = tag.Tag.Annotations // some clients set only the annotations of the inner tag
	}
	if err := validate(ctx, tag); err != nil {
		return nil, err
	}
	stream, err := t.stream(ctx, streamName)
	if apierrors.IsNotFound(err) {
		stream = &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Name: streamName, Namespace: tag.Namespace}}
		setTag(stream, tag, name)
		object, err := t.streams.Create(ctx, stream, rest.ValidateAllObjectFunc, options)
		if err != nil {
			return nil, err
		}
		return t.tag(ctx, object.(*imagev1.ImageStream), name)
	}
	if err != nil {
		return nil, err
	}
	if specTag(stream, name) != nil {
		return nil, apierrors.NewAlreadyExists(imagev1.Resource("imagestreamtags"), tag.Name)
	}
	return t.change(ctx, stream, name, &metav1.UpdateOptions{DryRun: options.DryRun}, func(stream *imagev1.ImageStream) { setTag(stream, tag, name) })
}

// Update changes a tag's target or annotations. If the tag is missing, it creates the tag.
func (t *streamTags) Update(ctx context.Context, fullName string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	validate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	old, changed, missing, err := desiredTag(ctx, t, fullName, object)
	if err != nil {
		return nil, false, err
	}
	tag := changed.(*imagev1.ImageStreamTag)
	streamName, name, err := t.check(tag)
	if err != nil {
		return nil, false, err
	}
	if missing {
		object, err := t.Create(ctx, tag, create, &metav1.CreateOptions{DryRun: options.DryRun})
		return object, true, err
	}
	if err := validate(ctx, tag, old); err != nil {
		return nil, false, err
	}
	stream, err := t.stream(ctx, streamName)
	if err != nil {
		return nil, false, err
	}
	if tag.ResourceVersion != "" {
		stream.ResourceVersion = tag.ResourceVersion // lets the store detect conflicts
	}
	stored, err := t.change(ctx, stream, name, options, func(stream *imagev1.ImageStream) { setTag(stream, tag, name) })
	return stored, false, err
}

// tagView is a resource whose objects are image stream tags.
type tagView interface {
	rest.Storage
	find(ctx context.Context, name string) (runtime.Object, error)
}

// desiredTag returns a tag before and after an update. missing means that the tag does not exist.
// In this case, old is an empty object.
func desiredTag(ctx context.Context, v tagView, name string, object rest.UpdatedObjectInfo) (old, desired runtime.Object, missing bool, err error) {
	old, err = v.find(ctx, name)
	missing = apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, nil, false, err
	}
	if missing {
		old = v.New()
	}
	desired, err = object.UpdatedObject(ctx, old)
	return old, desired, missing, err
}

// Delete deletes a tag and its history.
func (t *streamTags) Delete(ctx context.Context, fullName string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return t.deleteFrom(ctx, t, fullName, validate, options)
}

// deleteFrom implements Delete for a tagView. It calls validate with an object of the view's type.
func (t *streamTags) deleteFrom(ctx context.Context, v tagView, fullName string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	tag, err := v.find(ctx, fullName)
	if err != nil {
		return nil, false, err
	}
	if err := validate(ctx, tag); err != nil {
		return nil, false, err
	}
	streamName, name, err := split(fullName, ":", "imageStreamTag")
	if err != nil {
		return nil, false, err
	}
	stream, err := t.stream(ctx, streamName)
	if err != nil {
		return nil, false, err
	}
	if err := t.remove(ctx, stream.DeepCopy(), name, &metav1.UpdateOptions{DryRun: options.DryRun}); err != nil {
		return nil, false, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, true, nil
}

// remove removes a tag from the spec, which also deletes its history. If the tag is not in the
// spec, it removes only the history.
func (t *streamTags) remove(ctx context.Context, stream *imagev1.ImageStream, name string, options *metav1.UpdateOptions) error {
	if specTag(stream, name) != nil {
		stream.Spec.Tags = slices.DeleteFunc(stream.Spec.Tags, func(tag imagev1.TagReference) bool { return tag.Name == name })
		return replace(ctx, t.streams, stream, options)
	}
	stream.Status.Tags = slices.DeleteFunc(stream.Status.Tags, func(list imagev1.NamedTagEventList) bool { return list.Tag == name })
	return replace(ctx, t.status, stream, options)
}

// check splits a tag's name into the name of the stream and the name of the tag. It rejects an
// invalid name or target.
func (t *streamTags) check(tag *imagev1.ImageStreamTag) (stream, name string, err error) {
	stream, name, err = split(tag.Name, ":", "imageStreamTag")
	if err != nil {
		return "", "", err
	}
	if tag.Tag == nil {
		problems := field.ErrorList{field.Required(field.NewPath("tag"), "set the image or tag that the tag refers to")}
		return "", "", apierrors.NewInvalid(imagev1.GroupVersion.WithKind("ImageStreamTag").GroupKind(), tag.Name, problems)
	}
	setTagDefaults(tag.Tag)
	tag.Tag.Name = name
	if problems := validateTag(tag.Tag, field.NewPath("tag")); len(problems) > 0 {
		return "", "", apierrors.NewInvalid(imagev1.GroupVersion.WithKind("ImageStreamTag").GroupKind(), tag.Name, problems)
	}
	return stream, name, nil
}

func setTag(stream *imagev1.ImageStream, tag *imagev1.ImageStreamTag, name string) {
	reference := *tag.Tag.DeepCopy()
	reference.Name, reference.Annotations = name, tag.Annotations
	if existing := specTag(stream, name); existing != nil {
		*existing = reference
		return
	}
	stream.Spec.Tags = append(stream.Spec.Tags, reference)
}

func (t *streamTags) change(ctx context.Context, stream *imagev1.ImageStream, tag string, options *metav1.UpdateOptions, change func(*imagev1.ImageStream)) (runtime.Object, error) {
	changed := stream.DeepCopy()
	change(changed)
	if err := replace(ctx, t.streams, changed, options); err != nil {
		return nil, err
	}
	now, err := t.stream(ctx, stream.Name)
	if err != nil {
		return nil, err
	}
	return t.tag(ctx, now, tag)
}

func replace(ctx context.Context, store *registry.Store, stream *imagev1.ImageStream, options *metav1.UpdateOptions) error {
	_, _, err := store.Update(ctx, stream.Name, rest.DefaultUpdatedObjectInfo(stream), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, options)
	return err
}
