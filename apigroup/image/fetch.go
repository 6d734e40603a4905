package image

import (
	"context"
	stderrors "errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	"golang.org/x/mod/semver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/internal/outbound"
	"github.com/slipway-platform/slipway/internal/registryclient"
)

// maxImages is the maximum number of images in an index that is imported with all its images.
// Published indexes contain about a dozen images.
const maxImages = 100

// fetcher fetches images from remote registries for one import.
type fetcher struct {
	insecure         bool // applies to all of the import's registries
	strict, careless *registryclient.Session
	// stream is the stream that the import changes, or nil if it does not exist yet.
	stream *imagev1.ImageStream
}

// newFetcher returns a fetcher that uses the account's connections. If insecure is true, the
// fetcher does not verify certificates.
func newFetcher(pool *registryclient.Pool, account *registryclient.Account, keychain registryclient.Keychain, insecure bool) (fetcher, error) {
	session := func(insecure bool) (*registryclient.Session, error) {
		client := pool.Client(account, insecure)
		client.Keychain = keychain
		return client.Session()
	}
	strict, err := session(false)
	if err != nil {
		return fetcher{}, err
	}
	careless, err := session(true)
	return fetcher{insecure: insecure, strict: strict, careless: careless}, err
}

// session returns the session for an image. It verifies certificates unless insecure is true or the
// fetcher is insecure.
func (f fetcher) session(insecure bool) *registryclient.Session {
	if f.insecure || insecure {
		return f.careless
	}
	return f.strict
}

// image fetches an image. If from refers to an index, image fetches the image for the preferred
// platform. With the import mode PreserveOriginal, it fetches the index and all its images instead.
func (f fetcher) image(ctx context.Context, from string, policy imagev1.TagImportPolicy, preferred platform) (*imagev1.Image, []imagev1.Image, error) {
	reference, err := record.ParseReference(from)
	if err != nil {
		return nil, nil, err
	}
	session := f.session(policy.Insecure)
	image, err := fetchManifest(ctx, session, reference, from)
	if err != nil || len(image.DockerImageManifests) == 0 {
		return image, nil, err
	}
	if policy.ImportMode != imagev1.ImportModePreserveOriginal {
		child, err := platformDigest(image, preferred)
		if err != nil {
			return nil, nil, err
		}
		image, err := fetchManifest(ctx, session, reference, reference.AtDigest(child))
		return image, nil, err
	}
	if n := len(image.DockerImageManifests); n > maxImages {
		return nil, nil, fmt.Errorf("index %q has %d images, more than the %d that are imported with importMode %q", from, n, maxImages, policy.ImportMode)
	}
	var children []imagev1.Image
	for _, entry := range image.DockerImageManifests {
		child, err := fetchManifest(ctx, session, reference, reference.AtDigest(entry.Digest))
		if err != nil {
			return nil, nil, err
		}
		children = append(children, *child)
	}
	image.Annotations[record.ChildrenProven] = "true"
	return image, children, nil
}

// Annotations of a stream's tag that select an image from an index.
const (
	preferOS           = "importer.image.openshift.io/prefer-os"
	preferArchitecture = "importer.image.openshift.io/prefer-arch"
)

// platform is an operating system and an architecture. An empty architecture matches any
// architecture.
type platform struct{ os, architecture string }

// preferredPlatform returns the preferred platform according to a tag's annotations. The default is
// Linux on this machine's architecture.
func preferredPlatform(tag *imagev1.TagReference) platform {
	preferred := platform{"linux", runtime.GOARCH}
	if tag == nil {
		return preferred
	}
	if os := tag.Annotations[preferOS]; os != "" {
		preferred.os = os
	}
	if architecture := tag.Annotations[preferArchitecture]; architecture != "" {
		preferred.architecture = architecture
	}
	return preferred
}

// platformDigest returns the digest of the index's image for the preferred platform. If the index
// does not contain such an image, it returns the image for Linux on this machine's architecture, or
// else the first Linux image.
func platformDigest(index *imagev1.Image, preferred platform) (digest string, err error) {
	for _, candidate := range []platform{preferred, {"linux", runtime.GOARCH}, {"linux", ""}} {
		for _, entry := range index.DockerImageManifests {
			if entry.OS == candidate.os && (candidate.architecture == "" || entry.Architecture == candidate.architecture) {
				return entry.Digest, nil
			}
		}
	}
	return "", fmt.Errorf("index %q has no image for linux", index.Name)
}

// fetchManifest fetches a manifest and, unless the manifest is an index, its configuration.
func fetchManifest(ctx context.Context, session *registryclient.Session, reference record.Reference, at string) (*imagev1.Image, error) {
	manifest, err := session.Manifest(ctx, at)
	if err != nil {
		return nil, err
	}
	content := record.Content{MediaType: manifest.MediaType, Manifest: manifest.Bytes}
	if image, err := record.Of(content); err != nil || record.IsIndex(content.MediaType) {
		return located(image, reference), err
	}
	config, err := record.ConfigDigest(content.Manifest)
	if err != nil {
		return nil, err
	}
	if content.Config, err = session.Blob(ctx, reference.Name(), config); err != nil {
		return nil, err
	}
	image, err := record.Of(content)
	return located(image, reference), err
}

func located(image *imagev1.Image, reference record.Reference) *imagev1.Image {
	if image != nil {
		image.DockerImageReference = reference.AtDigest(image.Name)
	}
	return image
}

// newestFirst sorts tags: "latest" first, then versions in descending order, then all other tags by
// name.
func newestFirst(tags []string) {
	version := func(tag string) string {
		v := "v" + strings.TrimPrefix(tag, "v")
		if !semver.IsValid(v) {
			return ""
		}
		return v
	}
	slices.SortFunc(tags, func(a, b string) int {
		if (a == "latest") != (b == "latest") {
			return map[bool]int{true: -1, false: 1}[a == "latest"]
		}
		if order := semver.Compare(version(b), version(a)); order != 0 {
			return order
		}
		return strings.Compare(a, b)
	})
}

// outcome returns a Status for the result of an import. image is the name of the imported image.
func outcome(err error, image string) metav1.Status {
	if err == nil {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	var apiStatus apierrors.APIStatus
	if stderrors.As(err, &apiStatus) {
		return apiStatus.Status()
	}
	status := apierrors.NewInternalError(err).ErrStatus
	if rejection := (*outbound.Refused)(nil); stderrors.As(err, &rejection) {
		status = apierrors.NewForbidden(imagev1.Resource("dockerimage"), image, rejection).ErrStatus
	}
	if stderrors.Is(err, registryclient.ErrBusy) {
		status = apierrors.NewTooManyRequests(err.Error(), busyRetrySeconds).ErrStatus
	}
	switch registryclient.Status(err) {
	case http.StatusNotFound:
		status = apierrors.NewNotFound(imagev1.Resource("dockerimage"), image).ErrStatus
	case http.StatusUnauthorized, http.StatusForbidden:
		status = apierrors.NewUnauthorized(fmt.Sprintf("you may not have access to the container image %q: %v", image, err)).ErrStatus
	}
	return status
}
