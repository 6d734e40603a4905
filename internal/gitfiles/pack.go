package gitfiles

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

const (
	// maxObject is the maximum size of a commit, tree or delta. maxKept is the maximum total size
	// of all trees that are kept. Both are in bytes.
	maxObject, maxKept = 1 << 20, 8 << 20
	// maxDiscarded is the maximum total size of decompressed file contents, in bytes.
	maxDiscarded = 128 << 20
)

// Types of objects in a pack.
const (
	commitType    = 1
	treeType      = 2
	blobType      = 3
	tagType       = 4
	offsetDelta   = 6
	referredDelta = 7
)

// pack reads a pack's objects in order.
type pack struct {
	reader *counter
	// byOffset and byHash contain the trees read so far, because later trees can be stored as
	// deltas against them.
	byOffset map[int64][]byte
	byHash   map[string][]byte
	kept     int
	// discarded is the number of bytes in objects that are not kept.
	discarded int64
}

// counter counts the bytes that are read. It reads no more than decompression needs.
type counter struct {
	*bufio.Reader
	offset int64
}

// ReadByte implements io.ByteReader, so that the decompressor reads single bytes and does not read
// into the next object.
func (c *counter) ReadByte() (byte, error) {
	b, err := c.Reader.ReadByte()
	if err == nil {
		c.offset++
	}
	return b, err
}

// Read counts the bytes that it reads.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.offset += int64(n)
	return n, err
}

// find returns the names in a commit's directory dirs. It reads the pack until it has found the
// directory.
func find(r io.Reader, commit string, dirs []string) ([]string, error) {
	p := &pack{reader: &counter{Reader: bufio.NewReader(r)}, byOffset: map[int64][]byte{}, byHash: map[string][]byte{}}
	header := make([]byte, 12)
	if _, err := io.ReadFull(p.reader, header); err != nil || string(header[:4]) != "PACK" {
		return nil, errProtocol
	}
	objectID := commit
	for range binary.BigEndian.Uint32(header[8:]) {
		kind, content, err := p.next()
		if err != nil {
			return nil, err
		}
		if kind == commitType && hash("commit", content) == commit {
			line, _, _ := strings.Cut(string(content), "\n")
			objectID = strings.TrimPrefix(line, "tree ")
		}
		for content, ok := p.byHash[objectID]; ok; content, ok = p.byHash[objectID] {
			entries, err := parseTree(content)
			if err != nil {
				return nil, err
			}
			if len(dirs) == 0 {
				return entries.names, nil
			}
			if objectID = entries.directories[dirs[0]]; objectID == "" {
				return nil, fmt.Errorf("directory %q does not exist", dirs[0])
			}
			dirs = dirs[1:]
		}
	}
	return nil, errProtocol
}

// next reads an object. It returns a commit's content, and keeps trees.
func (p *pack) next() (kind int, content []byte, err error) {
	offset := p.reader.offset
	kind, size, err := p.header()
	if err != nil {
		return 0, nil, err
	}
	var base []byte
	switch kind {
	case commitType, treeType, blobType, tagType:
	case offsetDelta:
		distance, err := p.distance()
		if err != nil {
			return 0, nil, err
		}
		base = p.byOffset[offset-distance]
	case referredDelta:
		id := make([]byte, sha1.Size)
		if _, err := io.ReadFull(p.reader, id); err != nil {
			return 0, nil, errProtocol
		}
		base = p.byHash[hex.EncodeToString(id)]
	default:
		return 0, nil, errProtocol
	}
	// If the delta's base is not a known tree, discard the object, because the delta is for a file.
	if kind != commitType && kind != treeType && base == nil {
		return kind, nil, p.discard(size)
	}
	if content, err = p.inflate(size); err != nil || kind == commitType {
		return kind, content, err
	}
	if base != nil {
		if content, err = patch(base, content); err != nil {
			return 0, nil, err
		}
	}
	if p.kept += len(content); p.kept > maxKept {
		return 0, nil, errProtocol
	}
	p.byOffset[offset], p.byHash[hash("tree", content)] = content, content
	return treeType, nil, nil
}

// header reads an object's type, and its size after decompression.
func (p *pack) header() (kind int, size int64, err error) {
	b, err := p.reader.ReadByte()
	if err != nil {
		return 0, 0, errProtocol
	}
	kind, size = int(b>>4&7), int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = p.reader.ReadByte(); err != nil || shift > 40 {
			return 0, 0, errProtocol
		}
		size |= int64(b&0x7f) << shift
	}
	return kind, size, nil
}

// distance reads the number of bytes from a delta's base to the delta.
func (p *pack) distance() (distance int64, err error) {
	for first := true; ; first = false {
		b, err := p.reader.ReadByte()
		if err != nil || distance > maxPack {
			return 0, errProtocol
		}
		if !first {
			distance++
		}
		distance = distance<<7 | int64(b&0x7f)
		if b&0x80 == 0 {
			return distance, nil
		}
	}
}

// inflate decompresses an object of the given size.
func (p *pack) inflate(size int64) ([]byte, error) {
	if size > maxObject {
		return nil, errProtocol
	}
	content := bytes.NewBuffer(make([]byte, 0, size))
	err := p.copy(content, size)
	return content.Bytes(), err
}

// discard skips an object of the given size.
func (p *pack) discard(size int64) error {
	if p.discarded += size; p.discarded > maxDiscarded {
		return errProtocol
	}
	return p.copy(io.Discard, size)
}

// copy decompresses an object, which must have the size that its header specifies.
func (p *pack) copy(to io.Writer, size int64) error {
	content, err := zlib.NewReader(p.reader)
	if err != nil {
		return errProtocol
	}
	n, err := io.Copy(to, io.LimitReader(content, size+1))
	if err != nil || n != size {
		return errProtocol
	}
	return nil
}

// patch applies a delta. Its instructions copy parts of the base or insert other bytes.
func patch(base, delta []byte) ([]byte, error) {
	reader := bytes.NewReader(delta)
	from, err := binary.ReadUvarint(reader)
	if err != nil || from != uint64(len(base)) {
		return nil, errProtocol
	}
	size, err := binary.ReadUvarint(reader)
	if err != nil || size > maxObject {
		return nil, errProtocol
	}
	content := make([]byte, 0, size)
	for reader.Len() > 0 {
		instruction, _ := reader.ReadByte() // cannot fail, because at least one byte is left
		part := make([]byte, instruction)
		if instruction&0x80 == 0 {
			if _, err := io.ReadFull(reader, part); err != nil || instruction == 0 {
				return nil, errProtocol
			}
		} else if part, err = copied(base, instruction, reader); err != nil {
			return nil, err
		}
		if uint64(len(content)+len(part)) > size {
			return nil, errProtocol
		}
		content = append(content, part...)
	}
	if uint64(len(content)) != size {
		return nil, errProtocol
	}
	return content, nil
}

// copied returns the part of a base that an instruction refers to. Four of the instruction's bits
// select the offset bytes that follow, and three bits select the length bytes.
func copied(base []byte, instruction byte, reader *bytes.Reader) ([]byte, error) {
	var values [7]byte
	for i := range values {
		if instruction>>i&1 == 0 {
			continue
		}
		b, err := reader.ReadByte()
		if err != nil {
			return nil, errProtocol
		}
		values[i] = b
	}
	offset := uint64(binary.LittleEndian.Uint32(values[:4]))
	length := uint64(values[4]) | uint64(values[5])<<8 | uint64(values[6])<<16
	if length == 0 {
		length = 1 << 16
	}
	if offset+length > uint64(len(base)) {
		return nil, errProtocol
	}
	return base[offset : offset+length], nil
}

// tree contains the names in a directory, and the hashes of its subdirectories.
type tree struct {
	names       []string
	directories map[string]string
}

// parseTree parses a tree. Each entry is a mode, a name and a hash.
func parseTree(content []byte) (*tree, error) {
	t := &tree{directories: map[string]string{}}
	for len(content) > 0 {
		entry, rest, ok := bytes.Cut(content, []byte{0})
		mode, name, hasName := strings.Cut(string(entry), " ")
		if !ok || !hasName || len(rest) < sha1.Size {
			return nil, errProtocol
		}
		t.names = append(t.names, name)
		if mode == "40000" {
			t.directories[name] = hex.EncodeToString(rest[:sha1.Size])
		}
		content = rest[sha1.Size:]
	}
	return t, nil
}

// hash returns an object's hash.
func hash(kind string, content []byte) string {
	sum := sha1.New()
	fmt.Fprintf(sum, "%s %d\x00", kind, len(content))
	sum.Write(content)
	return hex.EncodeToString(sum.Sum(nil))
}
