// Package image serves the API group image.openshift.io, which contains images and image streams.
// An image describes content in a registry. An image stream assigns names (tags) to images and
// keeps each tag's history.
//
// Source: OpenShift Container Platform 3.9 Architecture, section on image streams; the wire types
// are defined in github.com/openshift/api/image/v1.
package image

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/registryclient"
)

// Options configure image streams and registries.
type Options struct {
	// Registry is the host and port of the cluster's registry, such as
	// "docker-registry.default.svc:5000".
	Registry string
	// PublicRegistry is the host name of the cluster's registry for external clients. It is
	// optional.
	PublicRegistry string
	// Hosts are additional names of the cluster's registry.
	Hosts []string
	// Allowed lists the registries from which users are allowed to import images. nil allows all
	// registries.
	Allowed []AllowedRegistry
	// MaxBulkImport is the maximum number of tags that are imported from one repository. 0 means no
	// limit.
	MaxBulkImport int
	// Registries manages the connections to remote registries.
	Registries *registryclient.Pool
}

// integrated reports whether a registry is the cluster's registry.
func (o Options) integrated(registry string) bool {
	return registry != "" && (registry == o.Registry || slices.Contains(o.Hosts, registry))
}

// Feature returns the image.openshift.io API group so that it can be registered with the API
// server.
func Feature(options Options) apiserver.Feature {
	streams, records := &streams{options: options}, newRecordCounter()
	virtual := func(plural string, storageOf func(view) rest.Storage) apiserver.Served {
		return apiserver.Virtual{Plural: plural, New: func(deps apiserver.Deps) (rest.Storage, error) {
			return storageOf(newView(deps, records)), nil
		}}
	}
	shared := &apiserver.Deps{}
	return apiserver.Feature{
		Admission: []apiserver.Admission{{Name: PolicyName, New: func(config io.Reader) (admission.Interface, error) { return newPolicy(options, shared, config) }, Live: true}},
		Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
			*shared = deps
			records.namespaces = deps.Informers.Core().V1().Namespaces().Lister()
			view, err := usageView(deps)
			return apiserver.Hooks{
				Handlers:  []apiserver.Handler{view},
				PostStart: map[string]genericserver.PostStartHookFunc{"openshift.io-image-records": records.start(deps)},
			}, err
		},
		Groups: []apiserver.Group{{
			GroupVersion: imagev1.GroupVersion,
			Install:      imagev1.Install,
			Legacy:       imagev1.DeprecatedInstallWithoutGroup,
			Resources: []apiserver.Served{
				images(), streams.resource(),
				virtual("imagestreamtags", func(v view) rest.Storage { return &streamTags{v, tagTable()} }),
				virtual("imagetags", newImageTags),
				virtual("imagestreamimages", func(v view) rest.Storage { return &streamImages{v, imageTable()} }),
				apiserver.Virtual{Plural: "imagestreammappings", New: func(deps apiserver.Deps) (rest.Storage, error) {
					return &mappings{newView(deps, records), options, deps.Authorizer, newLimits(deps)}, nil
				}},
				virtual("imagesignatures", func(v view) rest.Storage { return &signatures{v} }),
				virtual("imagestreams/layers", func(v view) rest.Storage { return &streamLayers{v} }),
				apiserver.Virtual{Plural: "imagestreamimports", New: func(deps apiserver.Deps) (rest.Storage, error) {
					return &imports{newView(deps, records), options, deps.Kube.CoreV1(), newLimits(deps), fetchTimeout}, nil
				}},
				apiserver.Virtual{Plural: "imagestreams/secrets", New: func(deps apiserver.Deps) (rest.Storage, error) {
					return &streamSecrets{newView(deps, records), deps.Kube.CoreV1()}, nil
				}},
			},
		}},
	}
}

func images() apiserver.Served {
	return apiserver.Resource[*imagev1.Image]{
		Plural: "images", ValidName: validImageName,
		Prepare: keepContent, Validate: validateImage,
		Columns: []apiserver.Column[*imagev1.Image]{
			{Name: "Image Name", Description: "Location of the image in a registry", Value: func(image *imagev1.Image) any { return image.DockerImageReference }},
		},
	}
}

// keepContent silently reverts changes to an image's content: a user can change only the metadata,
// the signatures and the pull spec. It is a no-op if the context contains the completion key, which
// the server sets when it adds missing content.
func keepContent(ctx context.Context, image, old *imagev1.Image) {
	if old == nil || ctx.Value(completion{}) != nil {
		return
	}
	copyContent(image, old)
}

// copyContent copies the fields that are derived from the manifest.
func copyContent(to, from *imagev1.Image) {
	to.DockerImageMetadata, to.DockerImageMetadataVersion = from.DockerImageMetadata, from.DockerImageMetadataVersion
	to.DockerImageManifest, to.DockerImageManifestMediaType = from.DockerImageManifest, from.DockerImageManifestMediaType
	to.DockerImageConfig, to.DockerImageLayers = from.DockerImageConfig, from.DockerImageLayers
	to.DockerImageManifests = from.DockerImageManifests
}

// completion is the context key of requests in which the server is allowed to change the content of
// an image record.
type completion struct{}

func (s *streams) resource() apiserver.Served {
	type stream = *imagev1.ImageStream
	return apiserver.Resource[stream]{
		Plural: "imagestreams", ShortNames: []string{"is"}, Categories: []string{"all"}, Namespaced: true, Status: true,
		ValidName: validStreamName,
		Default:   setStreamDefaults, Prepare: s.prepare, Validate: s.validate, ValidateStatus: s.validateStatus,
		Adjust: s.adjust,
		Fields: map[string]func(stream) string{
			"spec.dockerImageRepository":   func(s stream) string { return s.Spec.DockerImageRepository },
			"status.dockerImageRepository": func(s stream) string { return s.Status.DockerImageRepository },
		},
		Columns: []apiserver.Column[stream]{
			{Name: "Docker Repo", Description: "Location of the images in a registry", Value: repository},
			{Name: "Tags", Description: "Names of images, the last changed ones first", Value: func(s stream) any { return tagText(s) }},
			{Name: "Updated", Description: "When a tag last changed", Value: updated},
		},
	}
}

func setStreamDefaults(stream *imagev1.ImageStream) {
	for i := range stream.Spec.Tags {
		setTagDefaults(&stream.Spec.Tags[i])
	}
}

func setTagDefaults(tag *imagev1.TagReference) {
	if tag.ReferencePolicy.Type == "" {
		tag.ReferencePolicy.Type = imagev1.SourceTagReferencePolicy
	}
	if tag.ImportPolicy.ImportMode == "" {
		tag.ImportPolicy.ImportMode = imagev1.ImportModeLegacy
	}
}

func repository(stream *imagev1.ImageStream) any {
	if stream.Status.DockerImageRepository != "" {
		return stream.Status.DockerImageRepository
	}
	return stream.Spec.DockerImageRepository
}

// maxShown is the maximum number of tags that the table shows for one image stream.
const maxShown = 3

func tagText(stream *imagev1.ImageStream) string {
	names := []string{}
	for _, tag := range stream.Status.Tags {
		names = append(names, tag.Tag)
	}
	for _, tag := range stream.Spec.Tags {
		if !slices.Contains(names, tag.Name) { // the tag has not been imported yet
			names = append(names, tag.Name)
		}
	}
	if len(names) > maxShown {
		return strings.Join(names[:maxShown], ",") + " + " + strconv.Itoa(len(names)-maxShown) + " more..."
	}
	return strings.Join(names, ",")
}

func updated(stream *imagev1.ImageStream) any {
	last := stream.Status.Tags
	newest := imagev1.TagEvent{}
	for _, tag := range last {
		for _, event := range tag.Items[:min(1, len(tag.Items))] {
			if newest.Created.Before(&event.Created) || newest.Created.IsZero() {
				newest = event
			}
		}
	}
	if newest.Created.IsZero() {
		return ""
	}
	return apiserver.Since(newest.Created) + " ago"
}
