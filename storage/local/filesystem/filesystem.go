// Package filesystem makes, checks, grows, freezes and mounts the file systems of volumes.
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

// Type is a file system by the name that mount(8) knows.
type Type string

// The file systems that volumes can have.
const (
	Ext4 Type = "ext4"
	XFS  Type = "xfs"
)

// Types are the file systems that volumes can have.
func Types() []Type { return []Type{Ext4, XFS} }

// Known tells whether volumes can have the file system.
func (t Type) Known() bool { return slices.Contains(Types(), t) }

// MinSize is the size in bytes below which the file system cannot be made.
func (t Type) MinSize() int64 {
	if t == XFS {
		return 300 << 20 // the limit of mkfs.xfs since 5.19
	}
	return 8 << 20 // with less, ext4 has no journal
}

// Detect tells which file system is on the device or image at path; it is "" for one that volumes cannot have, or none.
func Detect(path string) (Type, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("detect file system: %w", err)
	}
	defer f.Close()
	const size = 4096 // holds the superblocks of both
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

// ext4Superblock is where the superblock of an ext4 begins.
const ext4Superblock = 1024
