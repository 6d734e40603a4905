package record

import imagev1 "github.com/openshift/api/image/v1"

// GarbagePath is the endpoint of the cluster's registry that deletes unreferenced content. The body
// of the POST request is a GarbageRequest, and the response is a Garbage.
const GarbagePath = "/admin/garbage"

// GarbageRequest selects content to delete. The registry deletes content only if neither an Image
// object nor a remaining manifest refers to it.
type GarbageRequest struct {
	// Images lists images that have been deleted from the API server or, with DryRun, that would be
	// deleted.
	Images []GarbageImage `json:"images,omitempty"`
	// Everything also selects all content that is older than an hour and that no image refers to.
	Everything bool `json:"everything,omitempty"`
	// DryRun means that nothing is deleted.
	DryRun bool `json:"dryRun,omitempty"`
}

// GarbageImage is an image to delete from the registry.
type GarbageImage struct {
	// Digest is the image's name.
	Digest string `json:"digest"`
	// Repositories lists the repositories that can contain the image, as <project>/<stream>.
	Repositories []string `json:"repositories,omitempty"`
	// Blobs lists the digests of the image's layers and its configuration or, for an index, of the
	// manifests in the index.
	Blobs []string `json:"blobs,omitempty"`
}

// Garbage lists the content that has been deleted or, with DryRun, that would be deleted.
type Garbage struct {
	Manifests []GarbageLink `json:"manifests,omitempty"`
	Layers    []GarbageLink `json:"layers,omitempty"`
	// Blobs lists the digests of deleted blobs.
	Blobs []string `json:"blobs,omitempty"`
	// Uploads lists the directories and files of interrupted pushes.
	Uploads []string `json:"uploads,omitempty"`
	// Bytes is the total size of Blobs and Uploads, in bytes.
	Bytes int64 `json:"bytes,omitempty"`
}

// GarbageLink is a manifest or a layer in one repository.
type GarbageLink struct {
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
}

// Blobs returns the digests in an image's record: layers, configuration, and the manifests of an
// index.
func Blobs(image *imagev1.Image) (digests []string) {
	for _, layer := range image.DockerImageLayers {
		digests = append(digests, layer.Name)
	}
	for _, child := range image.DockerImageManifests {
		digests = append(digests, child.Digest)
	}
	if metadata, err := Metadata(image); err == nil && metadata.ID != "" {
		digests = append(digests, metadata.ID)
	}
	return digests
}
