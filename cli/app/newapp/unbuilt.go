package newapp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// commandAnnotation is an annotation on image stream tags in the openshift project. It contains the
// command that creates the tag's image.
const commandAnnotation = "slipway.openshift.io/build-command"

// CheckImages returns an error if objects refer to image stream tags whose images an administrator
// has not created yet. The error contains the commands that create these images. CheckImages
// ignores tags for which it cannot find a command and, if AllowMissingTags is set, all tags.
func (f *Finder) CheckImages(ctx context.Context, objects []*unstructured.Unstructured) error {
	if f.AllowMissingTags {
		return nil
	}
	var missing []string
	for _, tag := range tagsIn(objects, f.Namespace) {
		stream, err := f.Images.ImageStreams(tag.namespace).Get(ctx, tag.stream, metav1.GetOptions{})
		if absent(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("find image stream %q: %w", tag.stream, err)
		}
		if command := buildCommand(stream, tag.name); command != "" && !hasImage(stream, tag.name) {
			missing = append(missing, fmt.Sprintf("image stream tag %s/%s:%s: %s", tag.namespace, tag.stream, tag.name, command))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("images do not exist yet; ask an administrator to create them on a master, or add --allow-missing-imagestream-tags to wait for them:\n  %s",
		strings.Join(slices.Compact(missing), "\n  "))
}

// tag is an image stream tag that an object refers to.
type tag struct{ namespace, stream, name string }

// tagsIn returns the image stream tags that the objects deploy or build from. namespace is the
// default namespace for references.
func tagsIn(objects []*unstructured.Unstructured, namespace string) (tags []tag) {
	add := func(in map[string]any, fields ...string) {
		from, _, _ := unstructured.NestedStringMap(in, append(fields, "from")...)
		if from["kind"] != "ImageStreamTag" {
			return
		}
		stream, name, _ := strings.Cut(from["name"], ":")
		reference := tag{namespace, stream, name}
		if from["namespace"] != "" {
			reference.namespace = from["namespace"]
		}
		tags = append(tags, reference)
	}
	for _, object := range objects {
		switch object.GetKind() {
		case "BuildConfig":
			for _, strategy := range []string{"sourceStrategy", "dockerStrategy", "customStrategy"} {
				add(object.Object, "spec", "strategy", strategy)
			}
		case "DeploymentConfig":
			triggers, _, _ := unstructured.NestedSlice(object.Object, "spec", "triggers")
			for _, trigger := range triggers {
				if fields, ok := trigger.(map[string]any); ok {
					add(fields, "imageChangeParams")
				}
			}
		}
	}
	return tags
}

// buildCommand returns the command that creates a tag's image, or "" if the command is unknown.
func buildCommand(stream *imagev1.ImageStream, name string) string {
	i := slices.IndexFunc(stream.Spec.Tags, func(t imagev1.TagReference) bool { return t.Name == name })
	if i < 0 {
		return ""
	}
	return stream.Spec.Tags[i].Annotations[commandAnnotation]
}

// hasImage reports whether a tag has or had an image.
func hasImage(stream *imagev1.ImageStream, name string) bool {
	return slices.ContainsFunc(stream.Status.Tags, func(t imagev1.NamedTagEventList) bool { return t.Tag == name && len(t.Items) > 0 })
}
