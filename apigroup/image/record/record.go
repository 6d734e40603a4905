// Package record creates an image's record, which is an Image object of image.openshift.io, from
// the manifest and configuration in a registry. A push and an import create the same record.
//
// It supports OCI and Docker schema 2 manifests and indexes. Source: OpenShift Container Platform
// 3.9 Architecture, image stream mappings and image metadata; OCI image specification 1.1.
package record

import (
	// Registers sha384 and sha512, because digests of image content can use these algorithms.
	_ "crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/openshift/api/image/docker10"
	"github.com/openshift/api/image/dockerpre012"
	imagev1 "github.com/openshift/api/image/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/internal/jsonlimit"
)

// Image annotations.
const (
	// Managed, if "true", means that the image is stored in the cluster's registry.
	Managed = "openshift.io/image.managed"
	// ManifestStored, if "true", means that the manifest is stored in the registry and not in the
	// record.
	ManifestStored = "image.openshift.io/manifestBlobStored"
	// LayersOrder contains the order of the layers. "ascending" means that the lowest layer is
	// first.
	LayersOrder = "image.openshift.io/dockerLayersOrder"
	// ChildrenProven, if "true", means that the client that imported or pushed an index had access
	// to all images of the index. Otherwise, users see only the names of the images, because the
	// author of the index might not be able to read them.
	ChildrenProven = "slipway.openshift.io/children-proven"
	// ReferenceClaimed, if "true", means that the DockerImageReference comes from a user's mapping
	// and has not been verified.
	ReferenceClaimed = "slipway.openshift.io/reference-claimed"
)

// ProjectLabel is a label of image records. Its value is the name of the project that created the
// record. Image stream resources do not show the label, because readers of a shared image might not
// be allowed to learn the project's name.
const ProjectLabel = "slipway.openshift.io/project"

// metadataVersion is the version of the metadata format.
const metadataVersion = "1.0"

// Content is an image in a registry.
type Content struct {
	// MediaType and Manifest are from the registry's response. The digest of Manifest is the
	// image's name.
	MediaType string
	Manifest  []byte
	// Config is the configuration blob. An index has no configuration.
	Config []byte
	// Largest is the size of the largest image in an index, in bytes. It becomes the size of the
	// index. 0 means unknown.
	Largest int64
}

// maxValues is the maximum number of JSON values in a manifest or a configuration. Typical
// manifests and configurations have hundreds of values.
const maxValues = 10_000

// check rejects content that, when decoded, requires much more memory than its size.
func (c Content) check() error {
	if err := jsonlimit.Check(c.Manifest, maxValues); err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	if err := jsonlimit.Check(c.Config, maxValues); err != nil {
		return fmt.Errorf("read image configuration: %w", err)
	}
	return nil
}

// Digest returns an image's name, which is the SHA-256 digest of its manifest.
func Digest(manifest []byte) string { return digest.FromBytes(manifest).String() }

// HasDigest reports whether id is the digest of content. The digest can use any registered
// algorithm.
func HasDigest(content []byte, id string) bool {
	parsed, err := digest.Parse(id)
	return err == nil && parsed.Algorithm().FromBytes(content) == parsed
}

// IsIndex reports whether a media type is the type of an index.
func IsIndex(mediaType string) bool { return types.MediaType(mediaType).IsIndex() }

// ConfigDigest returns the digest of the configuration in an image's manifest.
func ConfigDigest(manifest []byte) (string, error) {
	if err := (Content{Manifest: manifest}).check(); err != nil {
		return "", err
	}
	parsed, err := parseManifest(manifest)
	if err != nil {
		return "", errors.New("parse manifest: it does not match its media type")
	}
	return parsed.Config.Digest.String(), nil
}

// parseManifest parses an image's manifest. The manifest's digests can use any registered
// algorithm.
func parseManifest(content []byte) (manifest ocispec.Manifest, err error) {
	if err := json.Unmarshal(content, &manifest); err != nil {
		return manifest, err
	}
	return manifest, checkDigests(append(slices.Clone(manifest.Layers), manifest.Config))
}

// References returns the digests of the layers and the configuration in an image's manifest. It
// returns nil for an invalid manifest.
func References(manifest []byte) (digests []digest.Digest) {
	parsed, err := parseManifest(manifest)
	if err != nil {
		return nil
	}
	for _, layer := range parsed.Layers {
		digests = append(digests, layer.Digest)
	}
	return append(digests, parsed.Config.Digest)
}

// checkDigests returns an error if any descriptor has no valid digest.
func checkDigests(descriptors []ocispec.Descriptor) error {
	for _, descriptor := range descriptors {
		if err := descriptor.Digest.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Of returns an image's record. The caller sets DockerImageReference. Of returns an error for a
// Docker schema 1 manifest and for an invalid manifest. Errors never include text from the content.
func Of(c Content) (*imagev1.Image, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	mediaType := types.MediaType(c.MediaType)
	if err := checkType(c); err != nil {
		return nil, err
	}
	image := &imagev1.Image{
		ObjectMeta:                   metav1.ObjectMeta{Name: Digest(c.Manifest), Annotations: map[string]string{LayersOrder: "ascending"}},
		DockerImageManifest:          string(c.Manifest),
		DockerImageManifestMediaType: c.MediaType,
		DockerImageMetadataVersion:   metadataVersion,
	}
	switch {
	case mediaType == types.DockerManifestSchema1 || mediaType == types.DockerManifestSchema1Signed:
		return nil, fmt.Errorf("image %q has a manifest of Docker's schema 1, which is not supported; push it again with a current client", image.Name)
	case mediaType.IsIndex():
		return image, index(image, c)
	case mediaType.IsImage():
		return image, single(image, c)
	}
	return nil, fmt.Errorf("image %q has a manifest of an unknown type; push an image or index of OCI or of Docker schema 2", image.Name)
}

// checkType rejects a manifest that can also be decoded as a manifest of another type. Because the
// media type is not part of the digest, such a manifest's digest would identify two different
// images. Other checks report invalid manifests.
func checkType(c Content) error {
	var fields struct {
		MediaType string          `json:"mediaType"`
		Config    json.RawMessage `json:"config"`
		Layers    json.RawMessage `json:"layers"`
		Manifests json.RawMessage `json:"manifests"`
	}
	if json.Unmarshal(c.Manifest, &fields) != nil {
		return nil
	}
	if fields.MediaType != "" && fields.MediaType != c.MediaType {
		return fmt.Errorf("image %q has a manifest of type %q that was sent as %q; send it with its own type", Digest(c.Manifest), fields.MediaType, c.MediaType)
	}
	isIndex := IsIndex(c.MediaType)
	if isIndex && (fields.Config != nil || fields.Layers != nil) || !isIndex && fields.Manifests != nil {
		return fmt.Errorf("image %q has a manifest that is both one image and an index; build it again", Digest(c.Manifest))
	}
	return nil
}

// TypeOf returns the media type in a manifest. If the manifest does not contain a media type, which
// OCI allows, TypeOf derives the type from the manifest's fields. It returns "" if the manifest is
// not JSON.
func TypeOf(manifest []byte) string {
	var fields struct {
		MediaType string          `json:"mediaType"`
		Manifests json.RawMessage `json:"manifests"`
	}
	switch err := json.Unmarshal(manifest, &fields); {
	case err != nil:
		return ""
	case fields.MediaType != "":
		return fields.MediaType
	case fields.Manifests != nil:
		return string(types.OCIImageIndex)
	}
	return string(types.OCIManifestSchema1)
}

// index adds the images of an index to the record.
func index(image *imagev1.Image, c Content) error {
	var parsed ocispec.Index
	err := json.Unmarshal(c.Manifest, &parsed)
	if err == nil {
		err = checkDigests(parsed.Manifests)
	}
	if err != nil {
		return fmt.Errorf("parse index %q: it does not match its media type", image.Name)
	}
	for _, entry := range parsed.Manifests {
		child := imagev1.ImageManifest{Digest: entry.Digest.String(), MediaType: entry.MediaType, ManifestSize: entry.Size}
		if p := entry.Platform; p != nil {
			child.Architecture, child.OS, child.Variant = p.Architecture, p.OS, p.Variant
		}
		image.DockerImageManifests = append(image.DockerImageManifests, child)
	}
	return describe(image, docker10.DockerImage{Size: c.Largest})
}

// single adds a single image's metadata to the record.
func single(image *imagev1.Image, c Content) error {
	parsed, err := parseManifest(c.Manifest)
	if err != nil {
		return fmt.Errorf("parse manifest %q: it does not match its media type", image.Name)
	}
	size := parsed.Config.Size
	for _, layer := range parsed.Layers {
		image.DockerImageLayers = append(image.DockerImageLayers, imagev1.ImageLayer{
			Name: layer.Digest.String(), LayerSize: layer.Size, MediaType: layer.MediaType,
		})
		size += layer.Size
	}
	var old dockerpre012.DockerImage // defines the names of the configuration's fields
	if len(c.Config) > 0 && types.MediaType(parsed.Config.MediaType).IsConfig() {
		if err := json.Unmarshal(c.Config, &old); err != nil {
			return fmt.Errorf("parse configuration of image %q: it does not match its media type", image.Name)
		}
		image.DockerImageConfig = string(c.Config)
	}
	metadata := docker10.DockerImage{
		ID: parsed.Config.Digest.String(), Parent: old.Parent, Comment: old.Comment, Created: old.Created, Container: old.Container,
		ContainerConfig: docker10.DockerConfig(old.ContainerConfig), DockerVersion: old.DockerVersion, Author: old.Author,
		Architecture: old.Architecture, Size: size,
	}
	if old.Config != nil {
		config := docker10.DockerConfig(*old.Config)
		metadata.Config = &config
	}
	return describe(image, metadata)
}

func describe(image *imagev1.Image, metadata docker10.DockerImage) error {
	metadata.TypeMeta = metav1.TypeMeta{APIVersion: metadataVersion, Kind: "DockerImage"}
	raw, err := json.Marshal(metadata)
	if err != nil {
		return fmt.Errorf("write metadata of image %q: %w", image.Name, err)
	}
	image.DockerImageMetadata = runtime.RawExtension{Raw: raw}
	return nil
}

// Metadata decodes a record's metadata. If the record has no metadata, it returns empty metadata.
func Metadata(image *imagev1.Image) (docker10.DockerImage, error) {
	var metadata docker10.DockerImage
	if len(image.DockerImageMetadata.Raw) == 0 {
		return metadata, nil
	}
	if err := json.Unmarshal(image.DockerImageMetadata.Raw, &metadata); err != nil {
		return metadata, fmt.Errorf("parse metadata of image %q: %w", image.Name, err)
	}
	return metadata, nil
}
