package image

import (
	"encoding/binary"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// routerAccount is the group and user that HAProxy changes to when the pod runs as root; their number is of no account outside of the pod.
const routerAccount = "haproxy"

// capNetBindService is the capability to open ports below 1024, as capabilities(7) counts them.
const capNetBindService = 10

// Router returns the image of routers in pods: slipway, from its own image, with the HAProxy at path and the libraries that it needs, each where
// it is on this host. Its command serves routes with the service account of the pod. It runs as any user: HAProxy may open ports below 1024
// whoever starts it, as in OpenShift 3's image.
func Router(haproxy string) (Image, error) {
	programs, sum, err := dynamic([]string{"etc", "usr", "usr/bin", "var", "var/lib"}, entry{path: "usr/sbin/haproxy", source: haproxy, mode: 0o755, capability: capNetBindService})
	if err != nil {
		return Image{}, fmt.Errorf("make image %s: %w", RouterName, err)
	}
	entries := append(programs,
		file("etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\nhaproxy:x:99:99::/var/lib/haproxy:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
		file("etc/group", 0o644, "root:x:0:\nhaproxy:x:99:\nnogroup:x:65534:\n"),
		dir("var", 0o755), dir("var/lib", 0o755), dir("var/lib/haproxy", 0o775), // whoever runs it is of the group 0
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

// fileCapability is the value of the attribute security.capability that gives whoever runs a file one capability: the structure vfs_cap_data
// of capabilities(7), version 2.
func fileCapability(number int) string {
	const version2, effective = 0x02000000, 1
	value := binary.LittleEndian.AppendUint32(nil, version2|effective)
	value = binary.LittleEndian.AppendUint32(value, 1<<number) // permitted
	return string(append(value, make([]byte, 12)...))          // inheritable, and both of the upper half
}
