package pull

import (
	"slices"

	imagev1 "github.com/openshift/api/image/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// Spec returns the pull spec of an image in the history of a stream's tag, as OpenShift 3.11
// resolves it. In two cases, the pull spec refers to the stream's repository in the cluster's
// registry, so the cluster's registry serves the image:
//   - The tag's reference policy is Local.
//   - The tag copies an image of the cluster's registry from another stream. Pods that pull the
//     image then require no permission in the other project. `oc tag --reference` prevents this.
//
// Otherwise, the pull spec is the location in the event.
func Spec(stream *imagev1.ImageStream, tag string, event imagev1.TagEvent) string {
	repository := stream.Status.DockerImageRepository
	i := slices.IndexFunc(stream.Spec.Tags, func(t imagev1.TagReference) bool { return t.Name == tag })
	if i < 0 || event.Image == "" || repository == "" {
		return event.DockerImageReference
	}
	desired := stream.Spec.Tags[i]
	copied := desired.From != nil && desired.From.Kind != "DockerImage" && !desired.Reference && sameRegistry(event.DockerImageReference, repository)
	if copied || desired.ReferencePolicy.Type == imagev1.LocalTagReferencePolicy {
		return repository + "@" + event.Image
	}
	return event.DockerImageReference
}

// LatestSpec returns the pull spec of a tag's newest image, or "" if the tag has no image or stream
// is nil. See [Spec].
func LatestSpec(stream *imagev1.ImageStream, tag string) string {
	if stream == nil {
		return ""
	}
	i := slices.IndexFunc(stream.Status.Tags, func(list imagev1.NamedTagEventList) bool { return list.Tag == tag })
	if i < 0 || len(stream.Status.Tags[i].Items) == 0 {
		return ""
	}
	return Spec(stream, tag, stream.Status.Tags[i].Items[0])
}

// sameRegistry reports whether two references are in the same registry.
func sameRegistry(a, b string) bool {
	first, err := record.ParseReference(a)
	if err != nil {
		return false
	}
	second, err := record.ParseReference(b)
	return err == nil && first.Registry == second.Registry
}
