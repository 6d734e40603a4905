package image

import (
	"encoding/binary"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// routerAccount is the user and group under which HAProxy runs if the pod runs as root. Their ID
// matters only inside the pod.
const routerAccount = "haproxy"

// capNetBindService is the number of the CAP_NET_BIND_SERVICE capability in capabilities(7), which
// allows binding ports below 1024.
const capNetBindService = 10

// Router returns the image for router pods: Slipway's image with the HAProxy at path and its
// libraries, at the same paths as on this host. Its command serves routes with the pod's service
// account. The image can run as any user: as in OpenShift 3's image, HAProxy can bind ports below
// 1024 without root.
func Router(haproxy string) (Image, error) {
	haproxyEntry := entry{path: "usr/sbin/haproxy", source: haproxy, mode: 0o755, capability: capNetBindService}
	programs, sum, err := dynamic([]string{"etc", "usr", "usr/bin", "var", "var/lib"}, haproxyEntry)
	if err != nil {
		return Image{}, fmt.Errorf("create image %s: %w", RouterName, err)
	}
	entries := append(programs,
		file("etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\nhaproxy:x:99:99::/var/lib/haproxy:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
		file("etc/group", 0o644, "root:x:0:\nhaproxy:x:99:\nnogroup:x:65534:\n"),
		// The group can write to this directory, because any user in the pod belongs to group 0.
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

// fileCapability returns a value for a file's security.capability attribute that grants one
// capability to any user: the vfs_cap_data structure from capabilities(7), version 2.
func fileCapability(number int) string {
	const version2, effective = 0x02000000, 1
	value := binary.LittleEndian.AppendUint32(nil, version2|effective)
	// Set the bits of the permitted capabilities.
	value = binary.LittleEndian.AppendUint32(value, 1<<number)
	// The rest is zero: the inheritable set, and the upper halves of both sets.
	return string(append(value, make([]byte, 12)...))
}
