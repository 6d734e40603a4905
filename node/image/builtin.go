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
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// layoutVersion is part of each image's Content: it is raised when the images are laid out differently for the same programs.
const layoutVersion = "1"

// nobody is the user and group that pause runs as.
const nobody = "65535:65535"

// Pause returns the image of pod sandboxes, made of the static program at path.
func Pause(path string) (Image, error) {
	sum, err := checksum(path)
	if err != nil {
		return Image{}, fmt.Errorf("make image %s: %w", PauseName, err)
	}
	return Image{
		Name:    PauseName,
		Content: layoutVersion + " " + sum,
		entries: []entry{program("pause", path)},
		config: ocispec.ImageConfig{
			User:       nobody,
			Entrypoint: []string{"/pause"},
			// One of each in every pod: the Go runtime needs fewer threads and less memory this way.
			Env:        []string{"GOMAXPROCS=1"},
			WorkingDir: "/",
		},
	}, nil
}

// Tools returns the image of small programs, made of the statically linked busybox at path: each of its applets is in /bin, which
// /sbin, /usr/bin and /usr/sbin are links to. Its command is sh.
func Tools(busybox string) (Image, error) {
	const remedy = "run: apt-get install busybox-static"
	static, err := isStatic(busybox)
	if err != nil {
		return Image{}, fmt.Errorf("make image %s: %w; %s", ToolsName, err, remedy)
	}
	if !static {
		return Image{}, fmt.Errorf("make image %s: %q is not statically linked; %s", ToolsName, busybox, remedy)
	}
	sum, err := checksum(busybox)
	if err != nil {
		return Image{}, fmt.Errorf("make image %s: %w", ToolsName, err)
	}
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return Image{}, fmt.Errorf("make image %s: list programs of %q: %w", ToolsName, busybox, err)
	}
	entries := append(account(),
		dir("bin", 0o755), program("bin/busybox", busybox), link("sbin", "bin"),
		dir("usr", 0o755), link("usr/bin", "../bin"), link("usr/sbin", "../bin"),
	)
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" {
			entries = append(entries, link("bin/"+applet, "busybox"))
		}
	}
	return Image{
		Name:    ToolsName,
		Content: layoutVersion + " " + sum,
		entries: entries,
		config: ocispec.ImageConfig{
			Cmd:        []string{"sh"},
			Env:        []string{"PATH=/bin"},
			WorkingDir: "/",
		},
	}, nil
}

// Self returns slipway as an image, made of the static program at executable, which is also the commands oc and kubectl there.
func Self(executable string) (Image, error) {
	id, err := buildID(executable)
	if err != nil {
		return Image{}, fmt.Errorf("make image %s: %w", SelfName, err)
	}
	return Image{
		Name:    SelfName,
		Content: layoutVersion + " " + id,
		entries: append(account(),
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

// checksum returns the SHA-256 of the file at path in hexadecimal.
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

// buildID returns what identifies the content of the program at path: the identity that the Go linker writes into a program (go tool
// buildid), which is there without reading all of a large file, or else its checksum.
func buildID(path string) (string, error) {
	binary, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer binary.Close()
	// An ELF note: sizes of name and description, type, the name "Go", the description.
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

// isStatic reports whether the program at path runs without a dynamic linker.
func isStatic(path string) (bool, error) {
	binary, err := elf.Open(path)
	if pathError := (&fs.PathError{}); errors.As(err, &pathError) {
		return false, err
	}
	if err != nil {
		return false, fmt.Errorf("%q is not a program of this platform: %w", path, err)
	}
	defer binary.Close()
	for _, part := range binary.Progs {
		if part.Type == elf.PT_INTERP {
			return false, nil
		}
	}
	return true, nil
}
