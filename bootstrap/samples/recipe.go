package samples

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Archive is the file in the directory of a recipe that contains the packages, as Unpack writes
// them.
const Archive = "rootfs.tar"

// WriteRecipe writes a Dockerfile, and the files that it copies, into a directory. The caller adds
// Archive.
func (i *Image) WriteRecipe(dir string) error {
	copies := false
	err := i.rootFiles(func(name string, content []byte, mode fs.FileMode) error {
		copies = true
		target := filepath.Join(dir, "root", name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, content, mode)
	})
	for _, directory := range i.Writable {
		if err == nil && strings.HasPrefix(directory, "/run/") { // Debian's tools leave /run empty
			copies = true
			err = writeDirectory(filepath.Join(dir, "root", directory))
		}
	}
	if err != nil {
		return fmt.Errorf("write files of image %q: %w", i.Name, err)
	}
	return os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(i.dockerfile(copies)), 0o644)
}

// writeDirectory creates a directory that the group root can write in the image.
func writeDirectory(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o775)
}

// dockerfile returns the Dockerfile. Only if copies is set, there are files of the image's own.
func (i *Image) dockerfile(copies bool) string {
	lines := []string{"FROM scratch", "ADD " + Archive + " /"}
	if copies {
		lines = append(lines, "COPY root /")
	}
	env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": i.Home, "LANG": "C.UTF-8"}
	maps.Copy(env, i.Env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		lines = append(lines, fmt.Sprintf("ENV %s=%q", name, env[name]))
	}
	labels := map[string]string{
		"io.k8s.display-name":          i.DisplayName + " " + i.Version,
		"io.k8s.description":           i.Description,
		"io.openshift.tags":            strings.Join(i.Tags, ","),
		"io.openshift.expose-services": fmt.Sprintf("%d:%s", i.Port, i.Service),
		"name":                         i.Name,
		"version":                      i.Version,
	}
	if i.Builder() {
		labels["io.openshift.s2i.scripts-url"] = "image:///usr/libexec/s2i"
		labels["io.s2i.scripts-url"] = "image:///usr/libexec/s2i"
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		lines = append(lines, fmt.Sprintf("LABEL %s=%q", name, labels[name]))
	}
	if i.Volume != "" {
		lines = append(lines, fmt.Sprintf("VOLUME [%q]", i.Volume))
	}
	lines = append(lines, fmt.Sprintf("EXPOSE %d", i.Port), fmt.Sprintf("USER %d", i.UID), "WORKDIR "+i.Directory(), fmt.Sprintf("CMD [%q]", i.Command))
	return strings.Join(lines, "\n") + "\n"
}
