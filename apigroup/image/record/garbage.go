package record

import imagev1 "github.com/openshift/api/image/v1"

// GarbagePath is where the cluster's registry is asked to remove what nothing refers to: a POST of a GarbageRequest, answered by a Garbage.
const GarbagePath = "/admin/garbage"

// GarbageRequest says what may go from the registry. It goes only if the registry finds that neither an image of the API server nor a manifest that stays
// refers to it.
type GarbageRequest struct {
	// Images are images that were removed from the API server, or with DryRun would be: their manifests, and what they alone refer to.
	Images []GarbageImage `json:"images,omitempty"`
	// Everything asks for all that no image refers to and that is older than an hour, Images aside.
	Everything bool `json:"everything,omitempty"`
	// DryRun removes nothing.
	DryRun bool `json:"dryRun,omitempty"`
}

// GarbageImage is an image that may go from the registry.
type GarbageImage struct {
	// Digest is the image's name.
	Digest string `json:"digest"`
	// Repositories are those that may hold it, as <project>/<stream>.
	Repositories []string `json:"repositories,omitempty"`
	// Blobs are its layers, its configuration, and of an index the manifests in it.
	Blobs []string `json:"blobs,omitempty"`
}

// Garbage is what was removed from the registry, or with a dry run would be.
type Garbage struct {
	Manifests []GarbageLink `json:"manifests,omitempty"`
	Layers    []GarbageLink `json:"layers,omitempty"`
	// Blobs are digests of what lies on the disk.
	Blobs []string `json:"blobs,omitempty"`
	// Uploads are directories and files that pushes left which ended in the middle.
	Uploads []string `json:"uploads,omitempty"`
	// Bytes is the size of Blobs and Uploads together.
	Bytes int64 `json:"bytes,omitempty"`
}

// GarbageLink is a manifest or a layer of one repository.
type GarbageLink struct {
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
}

// Blobs are the digests that the record of an image names: layers, configuration, and the manifests of an index.
func Blobs(image *imagev1.Image) (digests []string) {
	for _, layer := range image.DockerImageLayers {
		digests = append(digests, layer.Name)
	}
	for _, child := range image.DockerImageManifests {
		digests = append(digests, child.Digest)
	}
	if described, err := Metadata(image); err == nil && described.ID != "" {
		digests = append(digests, described.ID)
	}
	return digests
}
