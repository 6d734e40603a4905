package instantiate

import (
	"fmt"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// The kinds of images that builds refer to.
const (
	TagKind    = "ImageStreamTag"
	ImageKind  = "ImageStreamImage"
	DockerKind = "DockerImage"
)

// baseVariable tells custom builders which image they start from.
const baseVariable = "OPENSHIFT_CUSTOM_BUILD_BASE_IMAGE"

// Images finds an image stream; one that is not there is nil.
type Images func(namespace, name string) (*imagev1.ImageStream, error)

// Resolve is the image that a reference means now, as a node or a builder pulls it. namespace is the one of references without.
func (i Images) Resolve(namespace string, reference *corev1.ObjectReference) (string, error) {
	if reference.Kind == DockerKind {
		return reference.Name, nil
	}
	if reference.Namespace != "" {
		namespace = reference.Namespace
	}
	name, which, _ := strings.Cut(reference.Name, map[string]string{TagKind: ":", ImageKind: "@"}[reference.Kind])
	stream, err := i(namespace, name)
	if err != nil {
		return "", fmt.Errorf("resolve %s %q in namespace %q: %w", reference.Kind, reference.Name, namespace, err)
	}
	found := ""
	switch {
	case stream == nil:
	case reference.Kind == TagKind:
		found = rollout.Latest(stream, which)
	case reference.Kind == ImageKind:
		found = imageOf(stream, which)
	}
	if found == "" {
		return "", fmt.Errorf("resolve %s %q in namespace %q: there is no such image yet; import or push it, or correct the reference", reference.Kind, reference.Name, namespace)
	}
	return found, nil
}

// imageOf is the image of an identifier in the history of a stream's tags, empty if there is none.
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

// From is the image that a strategy starts from, if it names one.
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

// References are the images that a build is made from: its strategy's, if it names one, and those that source comes from.
func References(spec *buildv1.CommonSpec) (references []*corev1.ObjectReference) {
	if from := From(&spec.Strategy); from != nil {
		references = append(references, from)
	}
	for i := range spec.Source.Images {
		references = append(references, &spec.Source.Images[i].From)
	}
	return references
}

// resolve puts images in place of the references of a build's specification.
func resolve(config *buildv1.BuildConfig, spec *buildv1.BuildSpec, images Images) error {
	for _, reference := range References(&spec.CommonSpec) {
		image := triggered(config, reference)
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

// triggered is the image that a trigger has just brought for a reference, empty where none follows it.
func triggered(config *buildv1.BuildConfig, reference *corev1.ObjectReference) string {
	for i := range config.Spec.Triggers {
		trigger := config.Spec.Triggers[i].ImageChange
		if trigger != nil && !trigger.Paused && reference.Kind == TagKind && Same(config.Namespace, Watched(config, trigger), reference) {
			return trigger.LastTriggeredImageID
		}
	}
	return ""
}

// Watched is the tag that a trigger follows: its own, or the one that the strategy starts from. It is nil where there is none.
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

// Same says whether two references, of which one without namespace is in the given one, mean the same.
func Same(namespace string, a, b *corev1.ObjectReference) bool {
	in := func(reference *corev1.ObjectReference) string {
		if reference.Namespace == "" {
			return namespace
		}
		return reference.Namespace
	}
	return a != nil && b != nil && a.Kind == b.Kind && a.Name == b.Name && in(a) == in(b)
}

// HasTrigger says whether a configuration has a trigger of a type.
func HasTrigger(config *buildv1.BuildConfig, of buildv1.BuildTriggerType) bool {
	return slices.ContainsFunc(config.Spec.Triggers, func(t buildv1.BuildTriggerPolicy) bool { return t.Type == of })
}

// BringImages notes in the triggers of a configuration which images its next build is made from. A request that an image has caused names it and
// the tag; the other triggers get their present image, if there is one. It says whether the request's trigger had that image already.
func BringImages(config *buildv1.BuildConfig, request *buildv1.BuildRequest, images Images) (already bool) {
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
		if image, err := images.Resolve(config.Namespace, tag); err == nil { // a tag without image waits for one
			trigger.LastTriggeredImageID = image
		}
	}
	return already
}

// CatchUp notes in a configuration the number of a build that exists, and the images that it was made from, as far as the build says it: the one that
// caused it and the one that its strategy starts from. It says whether that was news.
func CatchUp(config *buildv1.BuildConfig, build *buildv1.Build, number int64) (news bool) {
	if number <= config.Status.LastVersion {
		return false
	}
	config.Status.LastVersion = number
	if !metav1.IsControlledBy(build, config) { // something else that has its name
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
