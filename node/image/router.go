package image

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

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
	files, err := libraries(haproxy)
	if err != nil {
		return Image{}, fmt.Errorf("make image %s: %w", RouterName, err)
	}
	sum := sha256.New()
	entries := []entry{
		file("etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\nhaproxy:x:99:99::/var/lib/haproxy:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
		file("etc/group", 0o644, "root:x:0:\nhaproxy:x:99:\nnogroup:x:65534:\n"),
		dir("var", 0o755), dir("var/lib", 0o755), dir("var/lib/haproxy", 0o775), // whoever runs it is of the group 0
	}
	parents := map[string]bool{"etc": true, "usr": true, "usr/bin": true, "var": true, "var/lib": true} // what the entries above and the base have
	for _, name := range append(files, haproxy) {
		one := program(strings.TrimPrefix(name, "/"), name)
		if name == haproxy {
			one.path, one.capability = "usr/sbin/haproxy", capNetBindService
		}
		content, err := checksum(name)
		if err != nil {
			return Image{}, fmt.Errorf("make image %s: %w", RouterName, err)
		}
		fmt.Fprintln(sum, one.path, content)
		entries = append(append(entries, missing(one.path, parents)...), one)
	}
	return Image{
		Name:    RouterName,
		Content: layoutVersion + " " + hex.EncodeToString(sum.Sum(nil)),
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

// missing returns the directories above a path that parents does not have yet, and adds them to it.
func missing(name string, parents map[string]bool) (made []entry) {
	for up := path.Dir(name); up != "." && !parents[up]; up = path.Dir(up) {
		parents[up] = true
		made = append(made, dir(up, 0o755))
	}
	return made
}

// libraries returns the paths of the loader of a dynamically linked program and of the libraries that it finds for it.
func libraries(program string) (found []string, err error) {
	loader, err := interpreter(program)
	if err != nil || loader == "" {
		return nil, err
	}
	var problem strings.Builder
	command := exec.Command(loader, "--list", program)
	command.Stderr = &problem
	listed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list libraries of %q: %w: %s", program, err, strings.TrimSpace(problem.String()))
	}
	found = []string{loader}
	for line := range strings.Lines(string(listed)) {
		// "libz.so.1 => /lib/libz.so.1 (0x7f...)"; the loader itself and what is in the kernel have no arrow.
		name, at, is := strings.Cut(line, " => ")
		if !is {
			continue
		}
		library, _, _ := strings.Cut(at, " (")
		if library = strings.TrimSpace(library); !filepath.IsAbs(library) {
			return nil, fmt.Errorf("list libraries of %q: %s is not found", program, strings.TrimSpace(name))
		}
		found = append(found, library)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// interpreter returns the path of the loader that a program names; none for one that is statically linked.
func interpreter(program string) (string, error) {
	binary, err := elf.Open(program)
	if err != nil {
		return "", err
	}
	defer binary.Close()
	for _, part := range binary.Progs {
		if part.Type == elf.PT_INTERP {
			name, err := io.ReadAll(part.Open())
			if err != nil {
				return "", fmt.Errorf("read loader of %q: %w", program, err)
			}
			return strings.TrimRight(string(name), "\x00"), nil
		}
	}
	return "", nil
}

// fileCapability is the value of the attribute security.capability that gives whoever runs a file one capability: the structure vfs_cap_data
// of capabilities(7), version 2.
func fileCapability(number int) string {
	const version2, effective = 0x02000000, 1
	value := binary.LittleEndian.AppendUint32(nil, version2|effective)
	value = binary.LittleEndian.AppendUint32(value, 1<<number) // permitted
	return string(append(value, make([]byte, 12)...))          // inheritable, and both of the upper half
}
