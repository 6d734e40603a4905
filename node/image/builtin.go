package image

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// layoutVersion is part of each image's Content. Increment it when the layout of images changes
// while the programs stay the same.
const layoutVersion = "1"

// unprivileged is the user and group under which pause runs.
const unprivileged = "65535:65535"

// Pause returns the pod sandbox image, which contains the static program at path.
func Pause(path string) (Image, error) {
	sum, err := checksum(path)
	if err != nil {
		return Image{}, fmt.Errorf("create image %s: %w", PauseName, err)
	}
	return Image{
		Name:    PauseName,
		Content: layoutVersion + " " + sum,
		entries: []entry{program("pause", path)},
		config: ocispec.ImageConfig{
			User:       unprivileged,
			Entrypoint: []string{"/pause"},
			// Every pod has a pause process. With this setting, the Go runtime needs fewer threads
			// and less memory.
			Env:        []string{"GOMAXPROCS=1"},
			WorkingDir: "/",
		},
	}, nil
}

// Tools returns an image that contains the statically linked busybox at path. The applets are in
// /bin. /sbin, /usr/bin and /usr/sbin are links to /bin. The image's command is sh.
func Tools(busybox string) (Image, error) {
	const remedy = "run: apt-get install busybox-static"
	static, err := isStatic(busybox)
	if err != nil {
		return Image{}, fmt.Errorf("create image %s: %w; %s", ToolsName, err, remedy)
	}
	if !static {
		return Image{}, fmt.Errorf("create image %s: %q is not statically linked; %s", ToolsName, busybox, remedy)
	}
	sum, err := checksum(busybox)
	if err != nil {
		return Image{}, fmt.Errorf("create image %s: %w", ToolsName, err)
	}
	links, err := applets(busybox)
	if err != nil {
		return Image{}, fmt.Errorf("create image %s: %w", ToolsName, err)
	}
	entries := append(accounts(),
		dir("bin", 0o755), program("bin/busybox", busybox), link("sbin", "bin"),
		dir("usr", 0o755), link("usr/bin", "../bin"), link("usr/sbin", "../bin"),
	)
	return Image{
		Name:    ToolsName,
		Content: layoutVersion + " " + sum,
		entries: append(entries, links...),
		config: ocispec.ImageConfig{
			Cmd:        []string{"sh"},
			Env:        []string{"PATH=/bin"},
			WorkingDir: "/",
		},
	}, nil
}

// applets returns links in /bin to the static busybox, /bin/busybox, one link for each of its
// applets. It skips the names in omitted, because the image contains other programs with these
// names.
func applets(busybox string, omitted ...string) (links []entry, err error) {
	names, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list programs of %q: %w", busybox, err)
	}
	for name := range strings.FieldsSeq(string(names)) {
		if name != "busybox" && !slices.Contains(omitted, name) {
			links = append(links, link("bin/"+name, "busybox"))
		}
	}
	return links, nil
}

// Self returns Slipway's image, which contains the static program at executable. In the image, oc
// and kubectl are links to slipway.
func Self(executable string) (Image, error) {
	id, err := buildID(executable)
	if err != nil {
		return Image{}, fmt.Errorf("create image %s: %w", SelfName, err)
	}
	return Image{
		Name:    SelfName,
		Content: layoutVersion + " " + id,
		entries: append(accounts(),
			program("slipway", executable),
			dir("usr", 0o755), dir("usr/bin", 0o755),
			link("usr/bin/kubectl", "/slipway"), link("usr/bin/oc", "/slipway"), link("usr/bin/slipway", "/slipway"),
		),
		config: ocispec.ImageConfig{
			Entrypoint: []string{"/slipway"},
			Env:        []string{"PATH=/usr/bin"},
			WorkingDir: "/",
		},
		unpackedOnly: true,
	}, nil
}

// checksum returns a file's SHA-256 checksum in hexadecimal.
func checksum(path string) (string, error) {
	content, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer content.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		return "", fmt.Errorf("read %q: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// buildID returns an ID that identifies the content of the program at path. It is the Go linker's
// build ID (go tool buildid), which can be read without reading the whole file. If there is no
// build ID, the checksum is returned.
func buildID(path string) (string, error) {
	binary, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer binary.Close()
	// An ELF note consists of the sizes of name and description, the type, the name "Go", and the
	// description.
	const header = 16
	section := binary.Section(".note.go.buildid")
	if section == nil {
		return checksum(path)
	}
	note, err := section.Data()
	if err != nil || len(note) <= header {
		return checksum(path)
	}
	size := binary.ByteOrder.Uint32(note[4:])
	if size == 0 || int(size) > len(note)-header {
		return checksum(path)
	}
	return string(note[header : header+size]), nil
}

// isStatic reports whether the program at path does not need a dynamic linker.
func isStatic(path string) (bool, error) {
	binary, err := elf.Open(path)
	if pathError := (&fs.PathError{}); errors.As(err, &pathError) {
		return false, err
	}
	if err != nil {
		return false, fmt.Errorf("%q is not a program of this platform: %w", path, err)
	}
	defer binary.Close()
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			return false, nil
		}
	}
	return true, nil
}
