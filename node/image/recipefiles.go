package image

import (
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

// baseImage is an image of the store as the beginning of another.
func (s Store) baseImage(ctx context.Context, c *client.Client, name string) (Image, error) {
	full, err := reference.ParseDockerRef(name)
	if err != nil {
		return Image{}, err
	}
	record, err := c.ImageService().Get(ctx, full.String())
	if errdefs.IsNotFound(err) {
		return Image{}, fmt.Errorf("it is not on this host; load it, or choose one that slipway images list shows, such as %s", ToolsName)
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
	for _, layer := range manifest.Layers {
		if _, err := c.ContentStore().Info(ctx, layer.Digest); err != nil {
			return Image{}, fmt.Errorf("its layers are not kept on this host; load it from an archive, or choose another: %w", err)
		}
	}
	if len(manifest.Layers) != len(config.RootFS.DiffIDs) {
		return Image{}, errors.New("its layers and its configuration do not fit")
	}
	return Image{config: config.Config, layers: manifest.Layers, diffIDs: config.RootFS.DiffIDs}, nil
}

// addArchives adds the content of archives of dir to the root of the image, as ADD does with tar files. They come before what is copied.
func addArchives(what instructions.SourcesAndDest, img *Image, dir string) error {
	if len(what.SourceContents) > 0 || absolute(img.config.WorkingDir, what.DestPath) != "/" {
		return errors.New("only archives are added here, and only to /")
	}
	if len(img.entries) > 0 {
		return errors.New("add archives before files are copied")
	}
	for _, source := range what.SourcePaths {
		archive := filepath.Join(dir, path.Join("/", source))
		if info, err := os.Stat(archive); err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a file in %s", source, dir)
		}
		img.archives = append(img.archives, archive)
	}
	return nil
}

// copyFiles adds files and directories of dir to the image, as COPY says: a directory's content, and several files, go into the directory that
// is named; one file gets the name unless that ends with a slash. Links stay links.
func copyFiles(what instructions.SourcesAndDest, img *Image, dir string) error {
	if len(what.SourceContents) > 0 {
		return errors.New("content in the recipe itself is not known here; put it into a file")
	}
	target := absolute(img.config.WorkingDir, what.DestPath)
	into := strings.HasSuffix(what.DestPath, "/") || len(what.SourcePaths) > 1
	for _, source := range what.SourcePaths {
		found, err := filepath.Glob(filepath.Join(dir, path.Join("/", source)))
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("%s is not in %s", source, dir)
		}
		for _, from := range found {
			to := target
			info, err := os.Lstat(from)
			if err != nil {
				return err
			}
			if !info.IsDir() && (into || len(found) > 1) {
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
	return filepath.WalkDir(from, func(name string, found fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := found.Info()
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		e := entry{path: strings.TrimPrefix(path.Join(to, inside), "/"), mode: int64(info.Mode().Perm())}
		switch {
		case found.IsDir() && inside == ".":
			return nil // what is there keeps its owner and mode; otherwise it is made
		case found.IsDir():
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
