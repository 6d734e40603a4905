package image

import (
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Descheduler returns the image for the descheduler's Jobs. It is Slipway's image with the static
// busybox's applets in /bin, because OpenShift 3's Job starts /bin/descheduler from a shell.
func Descheduler(busybox string) (Image, error) {
	fail := func(err error) (Image, error) {
		return Image{}, fmt.Errorf("create image %s: %w", DeschedulerName, err)
	}
	sum, err := checksum(busybox)
	if err != nil {
		return fail(err)
	}
	links, err := applets(busybox)
	if err != nil {
		return fail(err)
	}
	entries := []entry{dir("bin", 0o755), program("bin/busybox", busybox), link("bin/descheduler", "/slipway")}
	return Image{
		Name:    DeschedulerName,
		Content: layoutVersion + " " + sum,
		base:    SelfName,
		entries: append(entries, links...),
		config: ocispec.ImageConfig{
			Entrypoint: []string{"/bin/descheduler"},
			Env:        []string{"PATH=/bin:/usr/bin"},
			WorkingDir: "/",
		},
		unpackedOnly: true,
	}, nil
}
