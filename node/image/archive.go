package image

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	client "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/platforms"
	"github.com/klauspost/compress/zstd"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Progress is called with the number of bytes read so far and an archive's size in bytes.
type Progress func(read, total int64)

// LoadArchive loads all images for this host's platform from the archive at path, and returns their
// names. It reads the output of `docker save` and `podman save`, and OCI image layouts. The archive
// is a tar file, either uncompressed or compressed with gzip or zstd. An image without a name is
// named localhost/<file name without suffix>:<tag>. If the image has no tag, the tag is "latest".
// progress can be nil.
//
// Errors contain the file and the cause. For example, the file is not an image archive, is
// truncated, or contains no image for this platform.
func (s Store) LoadArchive(ctx context.Context, path string, progress Progress) ([]string, error) {
	c, err := s.connect()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	names, err := s.loadArchive(ctx, c, path, nil, progress)
	if err != nil {
		return nil, fmt.Errorf("load images of %q: %w", path, err)
	}
	return names, nil
}

func (s Store) loadArchive(ctx context.Context, c *client.Client, path string, labels map[string]string,
	progress Progress) ([]string, error) {
	source, err := openSource(path, progress)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	stream, err := decompress(source)
	if err != nil {
		return nil, source.explain(err)
	}
	defer stream.Close()

	// The lease keeps blobs that no image references yet. It expires if this process cannot release
	// it.
	ctx, release, err := c.WithLease(ctx)
	if err != nil {
		return nil, err
	}
	defer release(context.WithoutCancel(ctx))
	index, err := archive.ImportIndex(ctx, c.ContentStore(), stream)
	if err != nil {
		return nil, source.explain(err)
	}
	// Read the rest of the file, so that a checksum at its end is verified.
	if _, err := io.Copy(io.Discard, stream); err != nil {
		return nil, source.explain(err)
	}
	return s.register(ctx, c, index, baseName(path), labels)
}

// register unpacks an index's images in the store and creates their names. base is the name for
// images without a name.
func (s Store) register(ctx context.Context, c *client.Client, index ocispec.Descriptor, base string,
	labels map[string]string) ([]string, error) {
	data, err := content.ReadBlob(ctx, c.ContentStore(), index)
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	var manifests ocispec.Index
	if err := json.Unmarshal(data, &manifests); err != nil {
		return nil, fmt.Errorf("decode index: %w", err)
	}
	platform := &matcher{MatchComparer: platforms.Default()}
	var names []string
	for _, target := range manifests.Manifests {
		if !platform.has(ctx, c.ContentStore(), target) {
			continue
		}
		// containerd's garbage collector keeps a blob only if its parent's labels refer to it.
		keep := images.SetChildrenLabels(c.ContentStore(), images.FilterPlatforms(images.ChildrenHandler(c.ContentStore()), platform))
		if err := images.WalkNotEmpty(ctx, keep, target); err != nil {
			return nil, fmt.Errorf("the image is incomplete: %w", err)
		}
		record := images.Image{Name: imageName(target, base), Target: target, Labels: labels}
		if err := client.NewImage(c, record).Unpack(ctx, s.Snapshotter); err != nil {
			return nil, fmt.Errorf("unpack image %s: %w", record.Name, err)
		}
		if err := replace(ctx, c.ImageService(), record); err != nil {
			return nil, fmt.Errorf("tag image %s: %w", record.Name, err)
		}
		names = append(names, record.Name)
	}
	if len(names) == 0 {
		return nil, platform.none()
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// imageName returns the name of an image in an archive from the image's annotations.
func imageName(target ocispec.Descriptor, base string) string {
	if name := target.Annotations[images.AnnotationImageName]; name != "" {
		return name
	}
	switch name := target.Annotations[ocispec.AnnotationRefName]; {
	case name == "":
		return base + ":latest"
	case strings.ContainsAny(name, "/:"):
		return name
	default:
		return base + ":" + name
	}
}

// matcher matches this host's platform. It records the platforms that do not match.
type matcher struct {
	platforms.MatchComparer
	rest []string
}

func (m *matcher) Match(p ocispec.Platform) bool {
	if m.MatchComparer.Match(p) {
		return true
	}
	if name := platforms.Format(p); !slices.Contains(m.rest, name) {
		m.rest = append(m.rest, name)
	}
	return false
}

// has reports whether the image can run on this host. If the index does not specify the platform,
// has reads it from the image's configuration.
func (m *matcher) has(ctx context.Context, store content.Store, target ocispec.Descriptor) bool {
	if target.Platform != nil && !m.Match(*target.Platform) {
		return false
	}
	manifest, err := images.Manifest(ctx, store, target, m)
	if err != nil {
		return false
	}
	platform, err := images.ConfigPlatform(ctx, store, manifest.Config)
	return err == nil && m.Match(platform)
}

// none returns the error for an archive that contains no image for this host.
func (m *matcher) none() error {
	if len(m.rest) == 0 {
		return fmt.Errorf("it has no image for this host's platform %s", platforms.DefaultString())
	}
	return fmt.Errorf("it is for %s, this host is %s", strings.Join(m.rest, ", "), platforms.DefaultString())
}

// source is an archive file that reports its read position.
type source struct {
	*os.File
	read, total int64
	progress    Progress
}

func openSource(path string, progress Progress) (*source, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a file")
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &source{File: file, total: info.Size(), progress: progress}, nil
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.File.Read(p)
	s.read += int64(n)
	if s.progress != nil && n > 0 {
		s.progress(s.read, s.total)
	}
	return n, err
}

// explain adds a remedy to an error that occurred while reading the archive.
func (s *source) explain(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it is truncated: it ends after %d bytes in the middle of an image; copy it again", s.read)
	}
	if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, zstd.ErrCRCMismatch) {
		return errors.New("it is damaged: its checksum differs; copy it again")
	}
	if strings.Contains(err.Error(), "unrecognized image format") {
		return errors.New("it is an archive without images: it contains neither manifest.json (docker save) nor oci-layout")
	}
	return err
}

// decompress returns the tar archive in the file. It detects the compression.
func decompress(file io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(file, 1<<16)
	start, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	plain := io.NopCloser(buffered)
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		plain, err = gzip.NewReader(buffered)
	case bytes.Equal(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		var decoder *zstd.Decoder
		if decoder, err = zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1)); err == nil {
			plain = decoder.IOReadCloser()
		}
	default:
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return checkTar(plain)
}

// checkTar returns stream with all its data. It returns an error if stream does not begin like a
// tar archive (the "magic" field in the first header).
func checkTar(stream io.ReadCloser) (io.ReadCloser, error) {
	const magicOffset, magic = 257, "ustar"
	buffered := bufio.NewReader(stream)
	start, err := buffered.Peek(magicOffset + len(magic))
	if err != nil && !errors.Is(err, io.EOF) {
		stream.Close()
		return nil, err
	}
	if errors.Is(err, io.EOF) || string(start[magicOffset:]) != magic {
		stream.Close()
		return nil, errors.New("not an image archive: expected the output of docker save, podman save or skopeo (tar, tar.gz or tar.zst)")
	}
	return struct {
		io.Reader
		io.Closer
	}{buffered, stream}, nil
}

// baseName derives an unnamed image's name, without tag, from the archive's file name.
func baseName(path string) string {
	name := strings.ToLower(filepath.Base(path))
	for _, suffix := range []string{".gz", ".tgz", ".zst", ".tar", ".oci"} {
		name = strings.TrimSuffix(name, suffix)
	}
	name = strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(name, "-"), "-")
	if name == "" {
		name = "image"
	}
	return "localhost/" + name
}
