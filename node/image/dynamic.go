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

// dynamic returns the entries of programs of this host, each with the loader and the libraries that it needs where they are on this host, and what
// identifies their content. directories are those that the image has without them.
func dynamic(directories []string, programs ...entry) (entries []entry, content string, err error) {
	sources := map[string]bool{}
	all := slices.Clone(programs)
	for _, one := range programs {
		files, err := libraries(one.source)
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
	for _, one := range all {
		content, err := checksum(one.source)
		if err != nil {
			return nil, "", err
		}
		fmt.Fprintln(sum, one.path, content)
		entries = append(append(entries, missing(one.path, parents)...), one)
	}
	return entries, hex.EncodeToString(sum.Sum(nil)), nil
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
