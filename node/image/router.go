package image

import (
	"encoding/binary"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// routerAccount is the user and group of HAProxy when the pod runs as root. Its number only matters
// in the pod.
const routerAccount = "haproxy"

// capNetBindService is the number of the capability to bind ports below 1024 in capabilities(7).
const capNetBindService = 10

// Router returns the image of router pods: slipway's image with the HAProxy at path and its
// libraries, at the same paths as on this host. Its command serves routes with the pod's service
// accounts. It runs as any user: as in OpenShift 3's image, HAProxy can bind ports below 1024
// without root.
func Router(haproxy string) (Image, error) {
	haproxyEntry := entry{path: "usr/sbin/haproxy", source: haproxy, mode: 0o755, capability: capNetBindService}
	programs, sum, err := dynamic([]string{"etc", "usr", "usr/bin", "var", "var/lib"}, haproxyEntry)
	if err != nil {
		return Image{}, fmt.Errorf("create image %s: %w", RouterName, err)
	}
	entries := append(programs,
		file("etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\nhaproxy:x:99:99::/var/lib/haproxy:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
		file("etc/group", 0o644, "root:x:0:\nhaproxy:x:99:\nnogroup:x:65534:\n"),
		// any user of the pod is in group 0
		dir("var", 0o755), dir("var/lib", 0o755), dir("var/lib/haproxy", 0o775),
	)
	return Image{
		Name:    RouterName,
		Content: layoutVersion + " " + sum,
		base:    SelfName,
		entries: entries,
		config: ocispec.ImageConfig{
			Entrypoint: []string{"/slipway", "router"},
			Env:        []string{"PATH=/usr/bin:/usr/sbin"},
			WorkingDir: "/var/lib/haproxy",
		},
		unpackedOnly: true,
	}, nil
}

// fileCapability returns the value of the attribute security.capability that grants one capability
// to any user of a file: the structure vfs_cap_data of capabilities(7), version 2.
func fileCapability(number int) string {
	const version2, effective = 0x02000000, 1
	value := binary.LittleEndian.AppendUint32(nil, version2|effective)
	value = binary.LittleEndian.AppendUint32(value, 1<<number) // permitted
	// inheritable, and both of the upper half
	return string(append(value, make([]byte, 12)...))
}
