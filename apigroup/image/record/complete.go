package record

import (
	"slices"

	imagev1 "github.com/openshift/api/image/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// Complete returns the record of an image, completed with the content of another record of the same
// image, and whether it has changed. The result does not depend on the order of the records: a
// record with a configuration replaces one without, and a proven record replaces a contradicting
// one.
func Complete(image, proven *imagev1.Image) (*imagev1.Image, bool) {
	next := image.DeepCopy()
	if knowsMore(image, proven) {
		next.DockerImageMetadata, next.DockerImageMetadataVersion = proven.DockerImageMetadata, proven.DockerImageMetadataVersion
		next.DockerImageLayers, next.DockerImageManifests = proven.DockerImageLayers, proven.DockerImageManifests
		next.DockerImageManifestMediaType, next.DockerImageConfig = proven.DockerImageManifestMediaType, proven.DockerImageConfig
	}
	if next.DockerImageManifest == "" && proven.DockerImageManifest != "" && image.Annotations[ManifestStored] != "true" {
		next.DockerImageManifest = proven.DockerImageManifest
	}
	if proven.Annotations[ReferenceClaimed] != "true" && (image.Annotations[ReferenceClaimed] == "true" ||
		proven.Annotations[Managed] == "true" && image.Annotations[Managed] != "true") {
		next.DockerImageReference = proven.DockerImageReference
		delete(next.Annotations, ReferenceClaimed)
	}
	for _, name := range []string{Managed, ManifestStored, LayersOrder, ChildrenProven} {
		if value := proven.Annotations[name]; value != "" && next.Annotations[name] == "" {
			if next.Annotations == nil {
				next.Annotations = map[string]string{}
			}
			next.Annotations[name] = value
		}
	}
	return next, !apiequality.Semantic.DeepEqual(image, next)
}

// knowsMore reports whether a proven record replaces the content of a stored one.
func knowsMore(image, proven *imagev1.Image) bool {
	before, err := Metadata(image)
	if err != nil {
		return true
	}
	after, err := Metadata(proven)
	if err != nil {
		return false
	}
	if IsIndex(proven.DockerImageManifestMediaType) {
		return !slices.Equal(image.DockerImageManifests, proven.DockerImageManifests) || after.Size > 0 && after.Size != before.Size
	}
	sameLayers := slices.Equal(image.DockerImageLayers, proven.DockerImageLayers)
	if after.Config == nil && after.Architecture == "" { // a manifest without its configuration
		return len(proven.DockerImageLayers) > 0 && !sameLayers
	}
	return !sameLayers || !apiequality.Semantic.DeepEqual(before, after) || image.DockerImageManifestMediaType != proven.DockerImageManifestMediaType
}
