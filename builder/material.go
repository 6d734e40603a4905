package builder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/slipway-platform/slipway/internal/buildpod"
)

// material is a secret or config map that is an input of the build. dir is the directory where it
// is mounted, and destination is its directory in the source.
type material struct{ dir, destination string }

// materials returns the Build's materials.
func (r *run) materials() (list []material) {
	for _, secret := range r.Build.Spec.Source.Secrets {
		list = append(list, material{filepath.Join(r.Secrets, buildpod.Input(secret.Secret.Name)), secret.DestinationDir})
	}
	for _, config := range r.Build.Spec.Source.ConfigMaps {
		list = append(list, material{filepath.Join(r.ConfigMaps, buildpod.Input(config.ConfigMap.Name)), config.DestinationDir})
	}
	return list
}

// files returns the content of each file, keyed by file name. It skips the kubelet's internal
// entries, which begin with two dots.
func (m material) files() (map[string][]byte, error) {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return nil, fmt.Errorf("read secret or config map of the source: %w", err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		if files[entry.Name()], err = os.ReadFile(filepath.Join(m.dir, entry.Name())); err != nil {
			return nil, fmt.Errorf("read secret or config map of the source: %w", err)
		}
	}
	return files, nil
}

// addMaterials copies the materials into the context, so that a Dockerfile can copy them.
func (r *run) addMaterials() error {
	root, err := os.OpenRoot(r.context)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, m := range r.materials() {
		files, err := m.files()
		if err != nil {
			return err
		}
		dir := path.Clean("./" + m.destination)
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("add secret or config map to the source: %w", err)
		}
		for name, content := range files {
			if err := replace(root, path.Join(dir, name), content); err != nil {
				return fmt.Errorf("add secret or config map to the source: %w", err)
			}
		}
	}
	return nil
}

// replace creates a file. If a link with that name exists, replace removes it instead of following
// it.
func replace(root *os.Root, name string, content []byte) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return root.WriteFile(name, content, 0o644)
}
