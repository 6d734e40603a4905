package registry

import (
	"archive/tar"
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// archive returns an image layer that contains executable files.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}
		if err := writer.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// archived writes an image to a file in the format of `docker save`, and returns the file's path.
func archived(t *testing.T, image v1.Image) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	tag, err := name.NewTag("registry.example.com/large:v1")
	if err == nil {
		err = tarball.WriteToFile(file, tag, image)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}
