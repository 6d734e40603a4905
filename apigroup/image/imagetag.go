package image

import (
	"context"

	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apiserver"
)

// imageTags serves the imagetags resource. An image tag contains a tag's target (spec), its history
// (status) and its image. imageTags updates tags in the same way as streamTags does.
type imageTags struct {
	*streamTags
	rest.TableConvertor
}

var (
	_ rest.Getter               = &imageTags{}
	_ rest.Lister               = &imageTags{}
	_ rest.CreaterUpdater       = &imageTags{}
	_ rest.GracefulDeleter      = &imageTags{}
	_ rest.SingularNameProvider = &imageTags{}
	_ rest.ShortNamesProvider   = &imageTags{}
)

func newImageTags(v view) rest.Storage {
	return &imageTags{&streamTags{view: v}, apiserver.Table([]apiserver.Column[*imagev1.ImageTag]{
		{Name: "Spec", Description: "Image or tag that the tag refers to", Value: func(t *imagev1.ImageTag) any {
			if t.Spec == nil || t.Spec.From == nil {
				return "Push"
			}
			return t.Spec.From.Name
		}},
		{Name: "Status", Description: "The image of the tag", Value: func(t *imagev1.ImageTag) any {
			if t.Status == nil || len(t.Status.Items) == 0 {
				return "Pending"
			}
			return t.Status.Items[0].Image
		}},
		{Name: "Updated", Description: "When the tag last changed", Value: func(t *imagev1.ImageTag) any {
			return apiserver.Since(t.CreationTimestamp) + " ago"
		}},
	})}
}

// New implements rest.Storage.
func (*imageTags) New() runtime.Object { return &imagev1.ImageTag{} }

// NewList implements rest.Lister.
func (*imageTags) NewList() runtime.Object { return &imagev1.ImageTagList{} }

// GetSingularName implements rest.SingularNameProvider.
func (*imageTags) GetSingularName() string { return "imagetag" }

// ShortNames implements rest.ShortNamesProvider.
func (*imageTags) ShortNames() []string { return []string{"itag"} }

// ConvertToTable implements rest.TableConvertor.
func (t *imageTags) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return t.TableConvertor.ConvertToTable(ctx, object, options)
}

// Get returns a tag with its image, if the tag has an image.
func (t *imageTags) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return t.find(ctx, name)
}

func (t *imageTags) find(ctx context.Context, name string) (runtime.Object, error) {
	streamTag, err := t.streamTags.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return t.withHistory(ctx, streamTag.(*imagev1.ImageStreamTag))
}

// withHistory converts a stream tag to an image tag, which includes the history.
func (t *imageTags) withHistory(ctx context.Context, tag *imagev1.ImageStreamTag) (*imagev1.ImageTag, error) {
	streamName, name, err := split(tag.Name, ":", "imageTag")
	if err != nil {
		return nil, err
	}
	stream, err := t.stream(ctx, streamName)
	if err != nil {
		return nil, err
	}
	view := imageTag(stream, name)
	if tag.Image.Name != "" {
		view.Image = &tag.Image
	}
	return view, nil
}

// imageTag returns a stream's tag without its image.
func imageTag(stream *imagev1.ImageStream, name string) *imagev1.ImageTag {
	tag := &imagev1.ImageTag{
		ObjectMeta: metadata(stream, stream.Name+":"+name, stream.CreationTimestamp), Spec: specTag(stream, name).DeepCopy(),
	}
	if tag.Spec != nil {
		tag.Annotations = tag.Spec.Annotations
	}
	for _, list := range stream.Status.Tags {
		if list.Tag != name {
			continue
		}
		tag.Status = list.DeepCopy()
		if len(list.Items) > 0 {
			tag.Generation, tag.CreationTimestamp = list.Items[0].Generation, list.Items[0].Created
		}
	}
	return tag
}

// List returns the tags of all streams in a namespace or in all namespaces, without their images.
func (t *imageTags) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	list := &imagev1.ImageTagList{}
	version, err := t.each(ctx, options, func(stream *imagev1.ImageStream, name string) error {
		list.Items = append(list.Items, *imageTag(stream, name))
		return nil
	})
	list.ResourceVersion = version
	return list, err
}

// Create adds a tag to a stream. If the stream is missing, it creates the stream.
func (t *imageTags) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	desired := object.(*imagev1.ImageTag)
	tag, err := streamTagOf(desired)
	if err != nil {
		return nil, err
	}
	if err := validate(ctx, desired); err != nil {
		return nil, err
	}
	stored, err := t.streamTags.Create(ctx, tag, rest.ValidateAllObjectFunc, options)
	if err != nil {
		return nil, err
	}
	return t.withHistory(ctx, stored.(*imagev1.ImageStreamTag))
}

// Update changes a tag's target or annotations. If the tag is missing, it creates the tag.
func (t *imageTags) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	validate rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	old, changed, missing, err := desiredTag(ctx, t, name, object)
	if err != nil {
		return nil, false, err
	}
	desired := changed.(*imagev1.ImageTag)
	tag, err := streamTagOf(desired)
	if err != nil {
		return nil, false, err
	}
	if missing {
		stored, err := t.Create(ctx, desired, create, &metav1.CreateOptions{DryRun: options.DryRun})
		return stored, true, err
	}
	if err := validate(ctx, desired, old); err != nil {
		return nil, false, err
	}
	existing, _, err := t.streamTags.Update(ctx, name, rest.DefaultUpdatedObjectInfo(tag), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, force, options)
	if err != nil {
		return nil, false, err
	}
	stored, err := t.withHistory(ctx, existing.(*imagev1.ImageStreamTag))
	return stored, false, err
}

// Delete deletes a tag and its history.
func (t *imageTags) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return t.deleteFrom(ctx, t, name, validate, options)
}

// streamTagOf converts an image tag to a stream tag.
func streamTagOf(desired *imagev1.ImageTag) (*imagev1.ImageStreamTag, error) {
	if desired.Spec == nil {
		problems := field.ErrorList{field.Required(field.NewPath("spec"), "set the image or tag that the tag refers to")}
		return nil, apierrors.NewInvalid(imagev1.GroupVersion.WithKind("ImageTag").GroupKind(), desired.Name, problems)
	}
	tag := &imagev1.ImageStreamTag{ObjectMeta: *desired.ObjectMeta.DeepCopy(), Tag: desired.Spec.DeepCopy()}
	if len(tag.Annotations) == 0 {
		tag.Annotations = tag.Tag.Annotations
	}
	return tag, nil
}
