package image

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// dynamic returns entries for programs from this host, with the loader and the libraries that they
// need, at the same paths as on this host. content is a fingerprint of their content. directories
// lists directories that the image already contains.
func dynamic(directories []string, programs ...entry) (entries []entry, content string, err error) {
	sources := map[string]bool{}
	all := slices.Clone(programs)
	for _, p := range programs {
		files, err := libraries(p.source)
		if err != nil {
			return nil, "", err
		}
		for _, name := range files {
			if !sources[name] {
				sources[name] = true
				all = append(all, program(strings.TrimPrefix(name, "/"), name))
			}
		}
	}
	parents := map[string]bool{}
	for _, directory := range directories {
		parents[directory] = true
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	sum := sha256.New()
	for _, e := range all {
		content, err := checksum(e.source)
		if err != nil {
			return nil, "", err
		}
		fmt.Fprintln(sum, e.path, content)
		entries = append(append(entries, missing(e.path, parents)...), e)
	}
	return entries, hex.EncodeToString(sum.Sum(nil)), nil
}

// missing returns the parent directories of name that are not yet in parents, and adds them to
// parents.
func missing(name string, parents map[string]bool) (dirs []entry) {
	for up := path.Dir(name); up != "." && !parents[up]; up = path.Dir(up) {
		parents[up] = true
		dirs = append(dirs, dir(up, 0o755))
	}
	return dirs
}

// libraries returns the paths of a dynamically linked program's loader and libraries.
func libraries(program string) (paths []string, err error) {
	loader, err := interpreter(program)
	if err != nil || loader == "" {
		return nil, err
	}
	var stderr strings.Builder
	command := exec.Command(loader, "--list", program)
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list libraries of %q: %w: %s", program, err, strings.TrimSpace(stderr.String()))
	}
	paths = []string{loader}
	for line := range strings.Lines(string(output)) {
		// Lines have the form "libz.so.1 => /lib/libz.so.1 (0x7f...)". The lines for the loader and
		// the kernel's vDSO contain no arrow.
		name, path, ok := strings.Cut(line, " => ")
		if !ok {
			continue
		}
		library, _, _ := strings.Cut(path, " (")
		if library = strings.TrimSpace(library); !filepath.IsAbs(library) {
			return nil, fmt.Errorf("list libraries of %q: %s is missing", program, strings.TrimSpace(name))
		}
		paths = append(paths, library)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// interpreter returns the path of a program's loader, or "" for a statically linked program.
func interpreter(program string) (string, error) {
	binary, err := elf.Open(program)
	if err != nil {
		return "", err
	}
	defer binary.Close()
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			name, err := io.ReadAll(segment.Open())
			if err != nil {
				return "", fmt.Errorf("read loader of %q: %w", program, err)
			}
			return strings.TrimRight(string(name), "\x00"), nil
		}
	}
	return "", nil
}
