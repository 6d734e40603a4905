package image

import (
	"fmt"
	"os/exec"
	"path"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Failover returns the image of pods that share virtual addresses: slipway's image with programs of
// this host (keepalived, nft, and bash for scripts, if the host has it) in /usr/sbin, and the
// applets of the static busybox in /bin. Its command is configured by OPENSHIFT_HA_* variables.
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
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return fail(fmt.Errorf("list programs of %q: %w", busybox, err))
	}
	entries = append(entries, dir("bin", 0o755), link("bin/bash", "/usr/sbin/bash"), dir("var", 0o755),
		dir("var/lib", 0o755), dir("var/lib/keepalived", 0o755), dir("run", 0o755))
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" && applet != "bash" {
			entries = append(entries, link("bin/"+applet, "busybox"))
		}
	}
	return Image{
		Name:    FailoverName,
		Content: layoutVersion + " " + sum,
		base:    SelfName,
		entries: entries,
		config: ocispec.ImageConfig{
			Entrypoint: []string{"/slipway", "ipfailover"},
			Env:        []string{"PATH=/bin:/usr/bin:/usr/sbin"},
			WorkingDir: "/var/lib/keepalived",
		},
		unpackedOnly: true,
	}, nil
}
