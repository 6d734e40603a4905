package instantiate

import (
	"fmt"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
)

// Kinds of image references.
const (
	TagKind    = "ImageStreamTag"
	ImageKind  = "ImageStreamImage"
	DockerKind = "DockerImage"
)

// baseVariable is the environment variable that contains the base image for custom builders.
const baseVariable = "OPENSHIFT_CUSTOM_BUILD_BASE_IMAGE"

// Images looks up an image stream. It returns nil if the stream does not exist.
type Images func(namespace, name string) (*imagev1.ImageStream, error)

// Resolve returns the pull spec of the image that a reference currently refers to. namespace is the
// default namespace of the reference.
func (i Images) Resolve(namespace string, reference *corev1.ObjectReference) (string, error) {
	if reference.Kind == DockerKind {
		return reference.Name, nil
	}
	if reference.Namespace != "" {
		namespace = reference.Namespace
	}
	name, tagOrID, _ := strings.Cut(reference.Name, map[string]string{TagKind: ":", ImageKind: "@"}[reference.Kind])
	stream, err := i(namespace, name)
	if err != nil {
		return "", fmt.Errorf("Error resolving %s %s in namespace %s: %w", reference.Kind, reference.Name, namespace, err)
	}
	image := ""
	switch {
	case stream == nil:
	case reference.Kind == TagKind:
		image = pull.LatestSpec(stream, tagOrID)
	case reference.Kind == ImageKind:
		image = imageOf(stream, tagOrID)
	}
	if image == "" {
		return "", fmt.Errorf("Error resolving %s %s in namespace %s: the image does not exist; import or push it, or correct the reference", reference.Kind, reference.Name, namespace)
	}
	return image, nil
}

// imageOf returns the pull spec of the image with the given ID in the history of a stream's tags,
// or "". The ID can be abbreviated.
func imageOf(stream *imagev1.ImageStream, id string) string {
	for _, tag := range stream.Status.Tags {
		for _, event := range tag.Items {
			if event.Image != "" && (event.Image == id || strings.HasPrefix(strings.TrimPrefix(event.Image, "sha256:"), id)) {
				return event.DockerImageReference
			}
		}
	}
	return ""
}

// From returns a strategy's image, or nil.
func From(strategy *buildv1.BuildStrategy) *corev1.ObjectReference {
	switch {
	case strategy.DockerStrategy != nil:
		return strategy.DockerStrategy.From
	case strategy.SourceStrategy != nil:
		return &strategy.SourceStrategy.From
	case strategy.CustomStrategy != nil:
		return &strategy.CustomStrategy.From
	}
	return nil
}

// References returns a build's image references: the image of its strategy, and its image sources.
func References(spec *buildv1.CommonSpec) (references []*corev1.ObjectReference) {
	if from := From(&spec.Strategy); from != nil {
		references = append(references, from)
	}
	for i := range spec.Source.Images {
		references = append(references, &spec.Source.Images[i].From)
	}
	return references
}

// resolve replaces the image references in a build's spec with the pull specs that they resolve to.
func resolve(config *buildv1.BuildConfig, spec *buildv1.BuildSpec, images Images) error {
	for _, reference := range References(&spec.CommonSpec) {
		image := triggeredImage(config, reference)
		if image == "" {
			var err error
			if image, err = images.Resolve(config.Namespace, reference); err != nil {
				return err
			}
		}
		*reference = corev1.ObjectReference{Kind: DockerKind, Name: image}
	}
	if custom := spec.Strategy.CustomStrategy; custom != nil {
		custom.Env = Override(custom.Env, []corev1.EnvVar{{Name: baseVariable, Value: custom.From.Name}})
	}
	return nil
}

// triggeredImage returns the last image recorded in the trigger that watches a reference, or "" if
// no trigger watches it.
func triggeredImage(config *buildv1.BuildConfig, reference *corev1.ObjectReference) string {
	for i := range config.Spec.Triggers {
		trigger := config.Spec.Triggers[i].ImageChange
		if trigger != nil && !trigger.Paused && reference.Kind == TagKind && Same(config.Namespace, Watched(config, trigger), reference) {
			return trigger.LastTriggeredImageID
		}
	}
	return ""
}

// Watched returns the tag that a trigger watches: the trigger's own tag or, by default, the
// strategy's tag. It returns nil if neither tag is set.
func Watched(config *buildv1.BuildConfig, trigger *buildv1.ImageChangeTrigger) *corev1.ObjectReference {
	from := trigger.From
	if from == nil {
		from = From(&config.Spec.Strategy)
	}
	if from == nil || from.Kind != TagKind {
		return nil
	}
	return from
}

// Same reports whether two references are equal. namespace is the default namespace of both
// references.
func Same(namespace string, a, b *corev1.ObjectReference) bool {
	namespaceOf := func(reference *corev1.ObjectReference) string {
		if reference.Namespace == "" {
			return namespace
		}
		return reference.Namespace
	}
	return a != nil && b != nil && a.Kind == b.Kind && a.Name == b.Name && namespaceOf(a) == namespaceOf(b)
}

// HasTrigger reports whether a configuration has a trigger of the given type.
func HasTrigger(config *buildv1.BuildConfig, triggerType buildv1.BuildTriggerType) bool {
	return slices.ContainsFunc(config.Spec.Triggers, func(t buildv1.BuildTriggerPolicy) bool { return t.Type == triggerType })
}

// UpdateTriggers records the next build's images in a configuration's triggers. If an ImageChange
// trigger caused the request, the request contains that trigger's tag and image. For the other
// triggers that are not paused, UpdateTriggers records the current image of their tag. If the tag
// has no image, it clears the recorded image of a trigger that watches the strategy's tag. It keeps
// the recorded image of any other trigger. It reports whether the request's trigger already had the
// image.
func UpdateTriggers(config *buildv1.BuildConfig, request *buildv1.BuildRequest, images Images) (already bool) {
	for i := range config.Spec.Triggers {
		trigger := config.Spec.Triggers[i].ImageChange
		if trigger == nil {
			continue
		}
		tag := Watched(config, trigger)
		if request.TriggeredByImage != nil && Same(config.Namespace, tag, request.From) {
			already = already || trigger.LastTriggeredImageID == request.TriggeredByImage.Name
			trigger.LastTriggeredImageID = request.TriggeredByImage.Name
			continue
		}
		if tag == nil || trigger.Paused {
			continue
		}
		image, err := images.Resolve(config.Namespace, tag)
		switch { // the tag might not have an image yet
		case err == nil:
			trigger.LastTriggeredImageID = image
		case trigger.From == nil:
			trigger.LastTriggeredImageID = "" // otherwise, builds would use the former tag's image
		}
	}
	return already
}

// RecordBuild records an existing build's number in its configuration, and the build's images in
// the triggers. These are the image of its ImageChange cause and its strategy's image. It reports
// whether the configuration has changed.
func RecordBuild(config *buildv1.BuildConfig, build *buildv1.Build, number int64) (changed bool) {
	if number <= config.Status.LastVersion {
		return false
	}
	config.Status.LastVersion = number
	// A build of a deleted configuration with the same name affects only the number.
	if !metav1.IsControlledBy(build, config) {
		return true
	}
	for i := range config.Spec.Triggers {
		trigger := config.Spec.Triggers[i].ImageChange
		if trigger == nil {
			continue
		}
		if from := From(&build.Spec.Strategy); trigger.From == nil && !trigger.Paused && from != nil && Watched(config, trigger) != nil {
			trigger.LastTriggeredImageID = from.Name
		}
		for _, cause := range build.Spec.TriggeredBy {
			if image := cause.ImageChangeBuild; image != nil && Same(config.Namespace, Watched(config, trigger), image.FromRef) {
				trigger.LastTriggeredImageID = image.ImageID
			}
		}
	}
	return true
}
