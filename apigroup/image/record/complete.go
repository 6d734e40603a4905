package record

import (
	"slices"

	imagev1 "github.com/openshift/api/image/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// Complete completes an image's record with the content of another record of the same image, and
// reports whether the record has changed. The result does not depend on the order of the records.
// Content with a configuration replaces content without a configuration, and verified content
// replaces content that contradicts it.
func Complete(image, verified *imagev1.Image) (*imagev1.Image, bool) {
	next := image.DeepCopy()
	if knowsMore(image, verified) {
		next.DockerImageMetadata, next.DockerImageMetadataVersion = verified.DockerImageMetadata, verified.DockerImageMetadataVersion
		next.DockerImageLayers, next.DockerImageManifests = verified.DockerImageLayers, verified.DockerImageManifests
		next.DockerImageManifestMediaType, next.DockerImageConfig = verified.DockerImageManifestMediaType, verified.DockerImageConfig
	}
	if next.DockerImageManifest == "" && verified.DockerImageManifest != "" && image.Annotations[ManifestStored] != "true" {
		next.DockerImageManifest = verified.DockerImageManifest
	}
	if verified.Annotations[ReferenceClaimed] != "true" && (image.Annotations[ReferenceClaimed] == "true" ||
		verified.Annotations[Managed] == "true" && image.Annotations[Managed] != "true") {
		next.DockerImageReference = verified.DockerImageReference
		delete(next.Annotations, ReferenceClaimed)
	}
	for _, name := range []string{Managed, ManifestStored, LayersOrder, ChildrenProven} {
		if value := verified.Annotations[name]; value != "" && next.Annotations[name] == "" {
			if next.Annotations == nil {
				next.Annotations = map[string]string{}
			}
			next.Annotations[name] = value
		}
	}
	return next, !apiequality.Semantic.DeepEqual(image, next)
}

// knowsMore reports whether a verified record's content must replace a stored record's content.
func knowsMore(image, verified *imagev1.Image) bool {
	before, err := Metadata(image)
	if err != nil {
		return true
	}
	after, err := Metadata(verified)
	if err != nil {
		return false
	}
	if IsIndex(verified.DockerImageManifestMediaType) {
		return !slices.Equal(image.DockerImageManifests, verified.DockerImageManifests) || after.Size > 0 && after.Size != before.Size
	}
	sameLayers := slices.Equal(image.DockerImageLayers, verified.DockerImageLayers)
	if after.Config == nil && after.Architecture == "" { // the verified record has no configuration
		return len(verified.DockerImageLayers) > 0 && !sameLayers
	}
	return !sameLayers || !apiequality.Semantic.DeepEqual(before, after) || image.DockerImageManifestMediaType != verified.DockerImageManifestMediaType
}
