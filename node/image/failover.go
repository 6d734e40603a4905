package image

import (
	"fmt"
	"os/exec"
	"path"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Failover returns the image of pods that share virtual addresses: slipway, from its own image, with programs of this host (keepalived, nft, and bash for
// scripts where it is there) in /usr/sbin, and the applets of the static busybox in /bin. Its command shares addresses as OPENSHIFT_HA_* say.
func Failover(busybox string, programs []string) (Image, error) {
	problem := func(err error) (Image, error) { return Image{}, fmt.Errorf("make image %s: %w", FailoverName, err) }
	packed := []entry{program("bin/busybox", busybox)}
	for _, name := range programs {
		packed = append(packed, program("usr/sbin/"+path.Base(name), name))
	}
	entries, sum, err := dynamic([]string{"bin", "etc", "usr", "usr/bin"}, packed...)
	if err != nil {
		return problem(err)
	}
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return problem(fmt.Errorf("list programs of %q: %w", busybox, err))
	}
	entries = append(entries, dir("bin", 0o755), link("bin/bash", "/usr/sbin/bash"), dir("var", 0o755), dir("var/lib", 0o755), dir("var/lib/keepalived", 0o755), dir("run", 0o755))
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
