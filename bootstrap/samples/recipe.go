package samples

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Archive is the name of the file in a recipe's directory that contains the unpacked packages.
// Unpack writes this file.
const Archive = "rootfs.tar"

// WriteRecipe writes a Dockerfile, and the files that it copies, into a directory. The caller must
// add Archive, unless the image has a base.
func (i *Image) WriteRecipe(dir string) error {
	copies, err := i.writeRoot(filepath.Join(dir, "root"))
	for _, directory := range i.Writable {
		// Add directories below /run, because Debian's tools leave /run empty.
		if err == nil && strings.HasPrefix(directory, "/run/") {
			copies = true
			err = writeDirectory(filepath.Join(dir, "root", directory))
		}
	}
	if err != nil {
		return fmt.Errorf("write files of image %q: %w", i.Name, err)
	}
	text, err := i.dockerfile(copies)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(text), 0o644)
}

// writeRoot writes the image's own files into a directory. exist reports whether the image has
// files of its own.
func (i *Image) writeRoot(dir string) (exist bool, err error) {
	err = i.rootFiles(func(name string, content []byte, mode fs.FileMode) error {
		exist = true
		target := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, content, mode)
	})
	return exist, err
}

// writeDirectory creates a directory that is writable by the root group in the image.
func writeDirectory(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o775)
}

// dockerfile returns the Dockerfile. copies reports whether the image has files of its own.
func (i *Image) dockerfile(copies bool) (string, error) {
	lines := []string{"FROM scratch", "ADD " + Archive + " /"}
	env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": i.Home, "LANG": "C.UTF-8"}
	if i.base != nil {
		lines, env = []string{"FROM " + i.base.Reference()}, map[string]string{}
	}
	if copies {
		lines = append(lines, "COPY root /")
	}
	maps.Copy(env, i.Env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		lines = append(lines, fmt.Sprintf("ENV %s=%q", name, env[name]))
	}
	labels, err := i.labels()
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		lines = append(lines, fmt.Sprintf("LABEL %s=%q", name, labels[name]))
	}
	if i.Volume != "" {
		lines = append(lines, fmt.Sprintf("VOLUME [%q]", i.Volume))
	}
	if i.Port != 0 {
		lines = append(lines, fmt.Sprintf("EXPOSE %d", i.Port))
	}
	if i.base == nil {
		lines = append(lines, fmt.Sprintf("USER %d", i.UID), "WORKDIR "+i.Directory())
	}
	if i.Entrypoint != "" {
		lines = append(lines, fmt.Sprintf("ENTRYPOINT [%q]", i.Entrypoint))
	}
	if i.Command != "" {
		lines = append(lines, fmt.Sprintf("CMD [%q]", i.Command))
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// labels returns the image's labels. An image with an apb.yml next to its image.yaml is a bundle.
func (i *Image) labels() (map[string]string, error) {
	labels := map[string]string{
		"io.k8s.display-name": i.DisplayName + " " + i.Version,
		"io.k8s.description":  i.Description,
		"io.openshift.tags":   strings.Join(i.Tags, ","),
		"name":                i.Name,
		"version":             i.Version,
	}
	if i.Port != 0 {
		labels["io.openshift.expose-services"] = fmt.Sprintf("%d:%s", i.Port, i.Service)
	}
	if i.Builder() {
		labels["io.openshift.s2i.scripts-url"] = "image:///usr/libexec/s2i"
		labels["io.s2i.scripts-url"] = "image:///usr/libexec/s2i"
	}
	specification, err := files.ReadFile(path.Join("images", i.Name, "apb.yml"))
	if errors.Is(err, fs.ErrNotExist) {
		return labels, nil
	}
	labels["com.redhat.apb.spec"], labels["com.redhat.apb.runtime"] = base64.StdEncoding.EncodeToString(specification), "2"
	return labels, err
}
