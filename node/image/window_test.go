package image

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// zstdFrame compresses data with the given window size, as a stream of unknown length.
func zstdFrame(t *testing.T, window int, data []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	encoder, err := zstd.NewWriter(&buffer, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := encoder.Write(data); err != nil {
		t.Fatal(err)
	}
	// Flush the encoder, so that the length of the frame is unknown.
	if err := encoder.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := encoder.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func TestLargestWindowOfFrames(t *testing.T) {
	small, large := zstdFrame(t, 1<<20, []byte("small")), zstdFrame(t, 64<<20, bytes.Repeat([]byte("large"), 1<<20))
	skippable := []byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'}
	tests := map[string]struct {
		stream []byte
		want   uint64
	}{
		"one frame":       {small, 1 << 20},
		"second frame":    {slices.Concat(small, large), 64 << 20},
		"skippable frame": {slices.Concat(skippable, large, skippable, small), 64 << 20},
		"gzip":            {gzipped([]byte("small")), 0},
		"tar":             {tarFile(t, "file", []byte("small")), 0},
		"empty":           {nil, 0},
	}
	for name, tt := range tests {
		got, err := zstdWindow(bufio.NewReader(bytes.NewReader(tt.stream)))
		if err != nil || got != tt.want {
			t.Errorf("%s: window %d, %v, want %d", name, got, err, tt.want)
		}
	}
	for name, stream := range map[string][]byte{
		"truncated": large[:len(large)-3], "trailing data": slices.Concat(small, []byte(strings.Repeat("x", 100))),
	} {
		if got, err := zstdWindow(bufio.NewReader(bytes.NewReader(stream))); err == nil {
			t.Errorf("%s: window %d, want an error", name, got)
		}
	}
}
