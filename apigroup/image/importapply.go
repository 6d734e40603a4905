package image

import (
	"context"
	"fmt"
	"slices"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/retry"
)

// CheckAnnotation is the image stream annotation that contains the time of the last import, in RFC
// 3339 format.
const CheckAnnotation = "openshift.io/image.dockerRepositoryCheck"

// apply records the fetched images as the newest images of the stream's tags, in a single update of
// the stream. It skips images that exceed the project's limits.
func (i *imports) apply(ctx context.Context, desired *imagev1.ImageStreamImport, results []result, dryRun []string) (*imagev1.ImageStream, error) {
	var changed *imagev1.ImageStream
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stream, err := i.stream(ctx, desired.Name)
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return err
		}
		if err := i.checkTarget(ctx, desired, stream); err != nil {
			return err
		}
		if missing {
			stream = &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Name: desired.Name, Namespace: desired.Namespace}}
		}
		results, err := i.refuse(stream, results)
		if err != nil {
			return err
		}
		setResults(desired, results)
		if err := i.keepImages(ctx, results, dryRun); err != nil {
			return err
		}
		stream = stream.DeepCopy()
		point(stream, desired, results)
		ctx := withStatus(ctx, func(stream *imagev1.ImageStream) { recordResults(stream, results) })
		if missing {
			stored, err := i.streams.Create(ctx, stream, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
			if apierrors.IsAlreadyExists(err) {
				return apierrors.NewConflict(imagev1.Resource("imagestreams"), desired.Name, err)
			}
			if err != nil {
				return err
			}
			changed = stored.(*imagev1.ImageStream)
			return nil
		}
		stored, _, err := i.streams.Update(ctx, stream.Name, rest.DefaultUpdatedObjectInfo(stream), rest.ValidateAllObjectFunc,
			rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: dryRun})
		if err != nil {
			return err
		}
		changed = stored.(*imagev1.ImageStream)
		return nil
	})
	return changed, err
}

// checkTarget returns an error if the results of an import cannot be stored. An import with a UID
// and a generation applies only to that version of the stream. If the stream has changed during the
// import, the error is a conflict. Any other import creates a stream that does not exist (nil),
// unless the project does not exist or is being deleted.
func (i *imports) checkTarget(ctx context.Context, desired *imagev1.ImageStreamImport, stream *imagev1.ImageStream) error {
	if desired.UID != "" {
		if stream == nil || stream.UID != desired.UID || desired.Generation != 0 && stream.Generation != desired.Generation {
			return apierrors.NewConflict(imagev1.Resource("imagestreams"), desired.Name, fmt.Errorf("it has changed since the import was requested"))
		}
		return nil
	}
	if stream != nil {
		return nil
	}
	project, err := i.core.Namespaces().Get(ctx, desired.Namespace, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if project.DeletionTimestamp != nil {
		return apierrors.NewForbidden(imagev1.Resource("imagestreams"), desired.Name, fmt.Errorf("the project %q is being deleted", desired.Namespace))
	}
	return nil
}

// keepImages stores the records of the images that results assigns to tags.
func (i *imports) keepImages(ctx context.Context, results []result, dryRun []string) error {
	for _, r := range results {
		if r.image == nil || r.tag == "" {
			continue
		}
		for _, image := range slices.Concat(r.children, []imagev1.Image{*r.image}) {
			err := i.keep(ctx, &image, dryRun)
			if apierrors.IsForbidden(err) {
				return err // unwrapped: the server derives the HTTP status from the error's type
			}
			if err != nil {
				return fmt.Errorf("store image %q: %w", image.Name, err)
			}
		}
	}
	return nil
}

// point sets the targets of a stream's tags to the imported images.
func point(stream *imagev1.ImageStream, desired *imagev1.ImageStreamImport, results []result) {
	if stream.Annotations == nil {
		stream.Annotations = map[string]string{}
	}
	stream.Annotations[CheckAnnotation] = time.Now().UTC().Format(time.RFC3339)
	if repository := desired.Spec.Repository; repository != nil {
		stream.Spec.DockerImageRepository = repository.From.Name
	}
	for _, r := range results {
		if r.tag == "" || r.skipped {
			continue
		}
		tag := imagev1.TagReference{
			Name: r.tag, From: &corev1.ObjectReference{Kind: dockerKind, Name: r.from}, ImportPolicy: r.policy, ReferencePolicy: r.reference,
		}
		setTagDefaults(&tag)
		existing := specTag(stream, r.tag)
		if existing == nil {
			stream.Spec.Tags = append(stream.Spec.Tags, tag)
			continue
		}
		if existing.From == nil || *existing.From != *tag.From {
			existing.From, existing.Generation = tag.From, nil
		}
		existing.Reference = false
		existing.ImportPolicy, existing.ReferencePolicy = tag.ImportPolicy, tag.ReferencePolicy
	}
}

// recordResults records, in a stream's status, the imported image or the error of each tag.
func recordResults(stream *imagev1.ImageStream, results []result) {
	for _, r := range results {
		tag := specTag(stream, r.tag)
		if tag == nil {
			continue
		}
		generation := stream.Generation
		if tag.Generation != nil {
			generation = *tag.Generation
		}
		if r.image == nil {
			setCondition(stream, r.tag, &imagev1.TagEventCondition{
				Type: imagev1.ImportSuccess, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(),
				Reason: string(r.status.Reason), Message: r.status.Message, Generation: generation,
			})
			continue
		}
		event := imagev1.TagEvent{Created: metav1.Now(), Image: r.image.Name, DockerImageReference: r.image.DockerImageReference, Generation: generation}
		addEvent(stream, r.tag, event)
		setCondition(stream, r.tag, nil)
		followers(stream, r.tag, event, map[string]bool{})
	}
}

// setCondition replaces all conditions of a tag with condition. If condition is nil, it removes the
// conditions.
func setCondition(stream *imagev1.ImageStream, tag string, condition *imagev1.TagEventCondition) {
	var list *imagev1.NamedTagEventList
	for i := range stream.Status.Tags {
		if stream.Status.Tags[i].Tag == tag {
			list = &stream.Status.Tags[i]
		}
	}
	if list == nil {
		if condition == nil {
			return
		}
		stream.Status.Tags = append(stream.Status.Tags, imagev1.NamedTagEventList{Tag: tag})
		list = &stream.Status.Tags[len(stream.Status.Tags)-1]
	}
	list.Conditions = nil
	if condition != nil {
		list.Conditions = []imagev1.TagEventCondition{*condition}
	}
}

// statusKey is the context key of a function that changes a stream's status.
type statusKey struct{}

// withStatus returns a context for updates of a stream. An update with this context also calls
// change, which changes the stream's status.
func withStatus(ctx context.Context, change func(*imagev1.ImageStream)) context.Context {
	return context.WithValue(ctx, statusKey{}, change)
}

// followers adds a tag's image to the tags of the same stream that refer to the tag, recursively.
func followers(stream *imagev1.ImageStream, tag string, event imagev1.TagEvent, seen map[string]bool) {
	seen[tag] = true
	for i := range stream.Spec.Tags {
		follower := &stream.Spec.Tags[i]
		if seen[follower.Name] || !follows(stream, follower, tag) {
			continue
		}
		next := *newEvent(event)
		if follower.Generation != nil {
			next.Generation = max(event.Generation, *follower.Generation)
		}
		addEvent(stream, follower.Name, next)
		followers(stream, follower.Name, event, seen)
	}
}

// follows reports whether a tag refers to another tag of the same stream.
func follows(stream *imagev1.ImageStream, follower *imagev1.TagReference, tag string) bool {
	from := follower.From
	if from == nil || from.Kind != tagKind || from.Namespace != "" && from.Namespace != stream.Namespace {
		return false
	}
	return from.Name == tag || from.Name == stream.Name+":"+tag
}
