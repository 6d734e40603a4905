// Package filesystem creates, checks, expands, freezes and mounts the file systems on volumes.
package filesystem

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Type is a file system type as in mount(8).
type Type string

// The supported file system types.
const (
	Ext4 Type = "ext4"
	XFS  Type = "xfs"
)

// Types returns the supported file system types.
func Types() []Type { return []Type{Ext4, XFS} }

// Supported reports whether volumes can use the file system type.
func (t Type) Supported() bool { return slices.Contains(Types(), t) }

// MinSize returns the minimum size of the file system, in bytes.
func (t Type) MinSize() int64 {
	if t == XFS {
		return 300 << 20 // the minimum of mkfs.xfs since 5.19
	}
	return 8 << 20 // mkfs.ext4 creates no journal on a smaller device
}

// Detect returns the type of the file system on the device or image at path, or "" if there is no
// file system or its type is not supported.
func Detect(path string) (Type, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("detect file system: %w", err)
	}
	defer f.Close()
	const size = 4096 // enough for the superblock of either file system
	head := make([]byte, size)
	if _, err := io.ReadFull(f, head); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("detect file system of %q: %w", path, err)
	}
	switch {
	case bytes.HasPrefix(head, []byte("XFSB")):
		return XFS, nil
	case binary.LittleEndian.Uint16(head[ext4Superblock+0x38:]) == 0xEF53:
		return Ext4, nil
	}
	return "", nil
}

// ext4Superblock is the offset of the ext4 superblock, in bytes.
const ext4Superblock = 1024
