package archivetest

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

// Bombs returns archives that expand to an endless stream or to a terabyte, keyed by name. Each
// archive can be read once.
func Bombs(t testing.TB) map[string]io.Reader {
	t.Helper()
	var header bytes.Buffer
	if err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: "zeros", Size: 1 << 40, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	return map[string]io.Reader{
		"endless file":    io.MultiReader(&header, zeros{}),
		"endless entries": &repeat{block: rawHeader("file", 0, tar.TypeReg)},
		"sparse file":     bytes.NewReader(sparse(1 << 40)),
	}
}

// zeros is an endless stream of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// repeat is an endless stream that repeats a block.
type repeat struct {
	block  []byte
	offset int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.block[r.offset:])
	r.offset = (r.offset + n) % len(r.block)
	return n, nil
}

const blockBytes = 512

// sparse returns an archive with a sparse file in the PAX format 1.0. The file consists of a single
// hole.
func sparse(size int64) []byte {
	var records strings.Builder
	for _, record := range []string{
		"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=zeros", fmt.Sprintf("GNU.sparse.realsize=%d", size),
	} {
		length := len(record) + len("00 \n")
		fmt.Fprintf(&records, "%02d %s\n", length, record)
	}
	block := func(text string) []byte { return append([]byte(text), make([]byte, blockBytes-len(text))...) }
	return bytes.Join([][]byte{
		rawHeader("pax", records.Len(), tar.TypeXHeader), block(records.String()),
		rawHeader("zeros", blockBytes, tar.TypeReg), block("0\n"), make([]byte, 2*blockBytes),
	}, nil)
}

// rawHeader returns a header block. It supports headers that tar.Writer rejects.
func rawHeader(name string, size int, typeflag byte) []byte {
	block := make([]byte, blockBytes)
	copy(block, name)
	copy(block[100:], "0000644\x00")
	copy(block[124:], fmt.Sprintf("%011o\x00", size))
	copy(block[136:], "00000000000\x00")
	copy(block[148:], "        ")
	block[156] = typeflag
	copy(block[257:], "ustar\x0000")
	sum := 0
	for _, b := range block {
		sum += int(b)
	}
	copy(block[148:], fmt.Sprintf("%06o\x00 ", sum))
	return block
}
