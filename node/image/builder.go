package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slipway-platform/slipway/internal/buildpod"
	"github.com/slipway-platform/slipway/internal/payload"
	"github.com/slipway-platform/slipway/internal/payload/manifest"
)

// authorities is the path of the host's CA certificates, which builds use to verify public servers.
const authorities = "/etc/ssl/certs/ca-certificates.crt"

// Builder returns the image for build pods. It contains the builder that is embedded in slipway,
// the static runc at path, and the host's CA certificates, if the host has any. runc runs the steps
// of a build.
func Builder(runc string) (Image, error) {
	builder, content, err := payload.Open(manifest.Builder)
	if err != nil {
		return Image{}, fmt.Errorf("create image %s: %w", BuilderName, err)
	}
	content.Close()
	runcSum, err := checksum(runc)
	if err != nil {
		return Image{}, fmt.Errorf("create image %s: %w", BuilderName, err)
	}
	entries := append(accounts(), dir("usr", 0o755), dir("usr/bin", 0o755), program(buildpod.Runc[1:], runc), entry{
		path: buildpod.Program[1:], mode: 0o755, size: builder.Size,
		open: func() (io.ReadCloser, error) {
			_, content, err := payload.Open(manifest.Builder)
			return content, err
		},
	})
	trusted, err := checksum(authorities)
	switch {
	case err == nil:
		entries = append(entries, dir("etc/ssl", 0o755), dir("etc/ssl/certs", 0o755),
			entry{path: authorities[1:], mode: 0o644, source: authorities})
	case !errors.Is(err, fs.ErrNotExist):
		return Image{}, fmt.Errorf("create image %s: %w", BuilderName, err)
	}
	return Image{
		Name:    BuilderName,
		Content: fmt.Sprintf("%s %s %s %s", layoutVersion, builder.SHA256, runcSum, trusted),
		entries: entries,
		config: ocispec.ImageConfig{
			Entrypoint: []string{buildpod.Program},
			Env:        []string{"PATH=/usr/bin"},
			WorkingDir: "/",
		},
		unpackedOnly: true,
	}, nil
}
