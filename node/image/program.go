package image

import (
	"fmt"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slipway-platform/slipway/internal/payload"
)

// singleProgram returns an image that contains only a program that is embedded in slipway (see
// package manifest). args are the program's first arguments.
func singleProgram(name, program string, args ...string) (Image, error) {
	embedded, content, err := payload.Open(program)
	if err != nil {
		return Image{}, fmt.Errorf("create image %s: %w", name, err)
	}
	content.Close()
	path := "usr/bin/" + program
	entries := append(accounts(), dir("usr", 0o755), dir("usr/bin", 0o755), entry{
		path: path, mode: 0o755, size: embedded.Size,
		open: func() (io.ReadCloser, error) {
			_, content, err := payload.Open(program)
			return content, err
		},
	})
	return Image{
		Name:    name,
		Content: layoutVersion + " " + embedded.SHA256,
		entries: entries,
		config: ocispec.ImageConfig{
			Entrypoint: append([]string{"/" + path}, args...),
			WorkingDir: "/",
		},
		unpackedOnly: true,
	}, nil
}
