package image

import (
	"fmt"
	"path"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Failover returns the image for ipfailover pods. It is Slipway's image plus keepalived, nft and,
// if installed, bash from this host in /usr/sbin, and the static busybox's applets in /bin. Its
// command is configured through OPENSHIFT_HA_* environment variables.
func Failover(busybox string, programs []string) (Image, error) {
	fail := func(err error) (Image, error) { return Image{}, fmt.Errorf("create image %s: %w", FailoverName, err) }
	files := []entry{program("bin/busybox", busybox)}
	for _, name := range programs {
		files = append(files, program("usr/sbin/"+path.Base(name), name))
	}
	entries, sum, err := dynamic([]string{"bin", "etc", "usr", "usr/bin"}, files...)
	if err != nil {
		return fail(err)
	}
	links, err := applets(busybox, "bash")
	if err != nil {
		return fail(err)
	}
	entries = append(entries, dir("bin", 0o755), link("bin/bash", "/usr/sbin/bash"), dir("var", 0o755),
		dir("var/lib", 0o755), dir("var/lib/keepalived", 0o755), dir("run", 0o755))
	return Image{
		Name:    FailoverName,
		Content: layoutVersion + " " + sum,
		base:    SelfName,
		entries: append(entries, links...),
		config: ocispec.ImageConfig{
			Entrypoint: []string{"/slipway", "ipfailover"},
			Env:        []string{"PATH=/bin:/usr/bin:/usr/sbin"},
			WorkingDir: "/var/lib/keepalived",
		},
		unpackedOnly: true,
	}, nil
}
