package gitfiles

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"strings"
	"testing"
)

// packWith returns a pack with the given objects. The first byte of each object is its type, and
// the other bytes are its content.
func packWith(objects ...[]byte) []byte {
	pack := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(objects)))
	for _, object := range objects {
		kind, content := object[0], object[1:]
		size := len(content)
		header := kind<<4 | byte(size&15)
		for size >>= 4; size > 0; size >>= 7 {
			pack, header = append(pack, header|0x80), byte(size&0x7f)
		}
		pack = append(pack, header)
		var compressed bytes.Buffer
		writer := zlib.NewWriter(&compressed)
		_, _ = writer.Write(content)
		_ = writer.Close()
		pack = append(pack, compressed.Bytes()...)
	}
	return pack
}

// sample returns a pack that contains a directory with a file, and the directory's commit.
func sample() (pack []byte, commit string) {
	tree := "100644 go.mod\x00" + strings.Repeat("\x01", 20)
	content := "tree " + hash("tree", []byte(tree)) + "\n\nx"
	return packWith([]byte("\x01"+content), []byte("\x02"+tree), []byte("\x03hello")), hash("commit", []byte(content))
}

// FuzzPack checks that no pack makes the search panic.
func FuzzPack(f *testing.F) {
	pack, commit := sample()
	f.Add(pack)
	f.Add(packWith([]byte("\x06\x01"), []byte("\x02")))
	f.Add(pack[:len(pack)-3])
	f.Fuzz(func(t *testing.T, pack []byte) {
		if names, err := find(bytes.NewReader(pack), commit, nil); err == nil && names == nil {
			t.Error("got neither names nor an error")
		}
	})
}

// FuzzPatch checks that no delta makes patch panic or exceed its limit.
func FuzzPatch(f *testing.F) {
	f.Add([]byte("base"), []byte("\x04\x06\x91\x00\x04\x02ab"))
	f.Add([]byte("base"), []byte("\x04\x06\x80"))
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		if content, err := patch(base, delta); err == nil && len(content) > maxObject {
			t.Errorf("%d bytes", len(content))
		}
	})
}

func TestLargePacksAreRejected(t *testing.T) {
	pack, commit := sample()
	if names, err := find(bytes.NewReader(pack), commit, nil); err != nil || len(names) != 1 {
		t.Fatalf("the sample has %q, %v", names, err)
	}
	for name, object := range map[string][]byte{
		"tree":  append([]byte("\x02"), make([]byte, maxObject+1)...),
		"files": append([]byte("\x03"), make([]byte, maxDiscarded+1)...),
	} {
		if _, err := find(bytes.NewReader(packWith(object)), commit, nil); err != errProtocol {
			t.Errorf("%s: %v", name, err)
		}
	}
}
