package image

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	client "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// baseImage returns an image in the store for use as a base image. If the node loads the image only
// after it has started, baseImage waits for it, and first calls waiting, unless waiting is nil.
func (s Store) baseImage(ctx context.Context, c *client.Client, name string, waiting func(name string)) (Image, error) {
	full, err := reference.ParseDockerRef(name)
	if err != nil {
		return Image{}, err
	}
	record, err := c.ImageService().Get(ctx, full.String())
	if errdefs.IsNotFound(err) && isLoadedLate(full.String()) {
		record, err = awaitImage(ctx, c, full.String(), waiting)
	}
	if errdefs.IsNotFound(err) {
		return Image{}, fmt.Errorf("it is not on this host; load it, or choose an image that `slipway images list` prints, such as %s", ToolsName)
	}
	if err != nil {
		return Image{}, err
	}
	manifest, err := images.Manifest(ctx, c.ContentStore(), record.Target, platforms.Default())
	if err != nil {
		return Image{}, err
	}
	data, err := content.ReadBlob(ctx, c.ContentStore(), manifest.Config)
	if err != nil {
		return Image{}, fmt.Errorf("read its configuration: %w", err)
	}
	var config ocispec.Image
	if err := json.Unmarshal(data, &config); err != nil {
		return Image{}, fmt.Errorf("decode its configuration: %w", err)
	}
	unpackedOnly, err := s.isUnpackedOnly(ctx, c, record, manifest.Layers)
	if err != nil {
		return Image{}, err
	}
	if len(manifest.Layers) != len(config.RootFS.DiffIDs) {
		return Image{}, errors.New("its layers do not match its configuration")
	}
	return Image{config: config.Config, layers: manifest.Layers, diffIDs: config.RootFS.DiffIDs, unpackedOnly: unpackedOnly}, nil
}

// isUnpackedOnly reports whether the archives of an image's layers are missing, so that an image on
// top of it can only share the unpacked layers. This is the case for the platform's own images.
// isUnpackedOnly fails if the layers are not unpacked either.
func (s Store) isUnpackedOnly(ctx context.Context, c *client.Client, record images.Image, layers []ocispec.Descriptor) (bool, error) {
	var missing error
	for _, layer := range layers {
		if _, err := c.ContentStore().Info(ctx, layer.Digest); err != nil {
			missing = err
		}
	}
	if missing == nil {
		return false, nil
	}
	unpacked, err := client.NewImage(c, record).IsUnpacked(ctx, s.Snapshotter)
	if err == nil && !unpacked {
		err = fmt.Errorf("its layers are not stored on this host; load it from an archive, or choose another image: %w", missing)
	}
	return true, err
}

// addFiles adds files from dir to the image in the same way as ADD. It extracts tar files, and
// copies other files and directories in the same way as COPY.
func addFiles(mapping instructions.SourcesAndDest, img *Image, dir string) error {
	files := mapping
	files.SourcePaths = nil
	for _, source := range mapping.SourcePaths {
		archive := filepath.Join(dir, path.Join("/", source))
		if !isArchive(archive) {
			files.SourcePaths = append(files.SourcePaths, source)
			continue
		}
		if absolute(img.config.WorkingDir, mapping.DestPath) != "/" {
			return fmt.Errorf("the archive %s can only be added to the directory /", source)
		}
		if len(img.entries) > 0 {
			return errors.New("archives must be added before files are copied; move this instruction up")
		}
		img.archives = append(img.archives, archive)
	}
	if len(mapping.SourcePaths) > 0 && len(files.SourcePaths) == 0 {
		return nil
	}
	return copyFiles(files, img, dir)
}

// isArchive reports whether a file is a tar file, either uncompressed or compressed with gzip or
// zstd.
func isArchive(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	stream, err := decompress(file)
	if err != nil {
		return false
	}
	defer stream.Close()
	_, err = tar.NewReader(stream).Next()
	return err == nil
}

// copyFiles adds files and directories from dir to the image in the same way as COPY. The content
// of a directory, and multiple files, are copied into the target directory. A single file is copied
// to the target path, or into the target directory if the target ends with a slash. Symbolic links
// are preserved.
func copyFiles(mapping instructions.SourcesAndDest, img *Image, dir string) error {
	if len(mapping.SourceContents) > 0 {
		return errors.New("inline content (here-documents) is not supported; put it in a file")
	}
	target := absolute(img.config.WorkingDir, mapping.DestPath)
	into := strings.HasSuffix(mapping.DestPath, "/") || len(mapping.SourcePaths) > 1
	for _, source := range mapping.SourcePaths {
		matches, err := filepath.Glob(filepath.Join(dir, path.Join("/", source)))
		if err != nil {
			return err
		}
		if len(matches) == 0 {
			return fmt.Errorf("%s is not in %s", source, dir)
		}
		for _, from := range matches {
			to := target
			info, err := os.Lstat(from)
			if err != nil {
				return err
			}
			if !info.IsDir() && (into || len(matches) > 1) {
				to = path.Join(target, filepath.Base(from))
			}
			if err := copyTree(from, to, img); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyTree(from, to string, img *Image) error {
	return filepath.WalkDir(from, func(name string, item fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := item.Info()
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		e := entry{path: strings.TrimPrefix(path.Join(to, inside), "/"), mode: int64(info.Mode().Perm())}
		switch {
		case item.IsDir() && inside == ".":
			return nil // COPY keeps the owner and mode of an existing directory
		case item.IsDir():
			e.path += "/"
		case info.Mode().IsRegular():
			e.source = name
		case info.Mode()&fs.ModeSymlink != 0:
			if e.link, err = os.Readlink(name); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is neither a file nor a directory", name)
		}
		img.entries = append(img.entries, e)
		return nil
	})
}
