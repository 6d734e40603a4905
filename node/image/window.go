package image

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/pkg/archive/compression"
	"github.com/klauspost/compress/zstd"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// maxWindow is the maximum window size of a zstd frame, in bytes. A decoder needs several times
// this amount of memory. Decoders must support at least 8 MiB, and containerd's decoder would
// accept up to 512 MiB.
const maxWindow = 16 << 20

// checkWindow returns an error for a layer with a large zstd window.
func checkWindow(ctx context.Context, store content.Store, layer ocispec.Descriptor) error {
	blob, err := store.ReaderAt(ctx, layer)
	if err != nil {
		return fmt.Errorf("read layer: %w", err)
	}
	defer blob.Close()
	const bufferSize = 1 << 20
	window, err := zstdWindow(bufio.NewReaderSize(content.NewReader(blob), bufferSize))
	if err != nil {
		return fmt.Errorf("read frames of layer %s: %w", layer.Digest, err)
	}
	if window > maxWindow {
		return refuse("a layer of the image is compressed with a zstd window of more than %d MiB", maxWindow>>20)
	}
	return nil
}

// zstdWindow returns the largest window size among the frames in a zstd stream, in bytes, or 0 for
// other streams. It skips the compressed blocks.
func zstdWindow(stream *bufio.Reader) (window uint64, err error) {
	const magicLength = 10
	if start, err := stream.Peek(magicLength); err != nil || compression.DetectCompression(start) != compression.Zstd {
		return 0, nil
	}
	for {
		start, err := stream.Peek(zstd.HeaderMaxSize)
		if len(start) == 0 && errors.Is(err, io.EOF) {
			return window, nil
		}
		var header zstd.Header
		if err := header.Decode(start); err != nil {
			return 0, err
		}
		if err := discard(stream, header.HeaderSize+int(header.SkippableSize)); err != nil {
			return 0, err
		}
		if header.Skippable {
			continue
		}
		window = max(window, header.WindowSize)
		if header.SingleSegment {
			window = max(window, header.FrameContentSize)
		}
		if err := discardBlocks(stream, header.HasCheckSum); err != nil {
			return 0, err
		}
	}
}

// discardBlocks skips a frame's blocks: RFC 8878, section 3.1.1.2.
func discardBlocks(stream *bufio.Reader, hasChecksum bool) error {
	const headerLength, checksumLength, runLength = 3, 4, 1
	for last := false; !last; {
		header := make([]byte, headerLength)
		if _, err := io.ReadFull(stream, header); err != nil {
			return err
		}
		value := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
		last = value&1 != 0
		size := value >> 3
		if kind := value >> 1 & 3; kind == 1 {
			size = runLength
		}
		if err := discard(stream, size); err != nil {
			return err
		}
	}
	if hasChecksum {
		return discard(stream, checksumLength)
	}
	return nil
}

func discard(stream *bufio.Reader, bytes int) error {
	_, err := stream.Discard(bytes)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
