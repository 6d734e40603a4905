// Package manifest describes the native programs that are embedded in the slipway binary.
// hack/payload writes the manifest next to the compressed programs, and internal/payload reads it.
//
// The manifest contains each program's version, size and checksum. With the manifest, unpacked
// programs can be checked at startup by size, mode and modification time, without being read or
// decompressed.
package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// File is the manifest's name among the embedded files.
const File = "manifest.json"

// Programs in the payload.
const (
	Containerd = "containerd"
	Shim       = "containerd-shim-runc-v2"
	Runc       = "runc"
	CNI        = "slipway-cni"
	Pause      = "pause"
	Supervisor = "slipway-supervisor"
	Deployer   = "slipway-deployer"
	Builder    = "slipway-builder"

	EgressRouter = "slipway-egress-router"
	OAuthProxy   = "slipway-oauth-proxy"
)

// Names returns the programs in a complete payload, in the order in which they are unpacked.
func Names() []string {
	return []string{Containerd, Shim, Runc, CNI, Pause, Supervisor, Deployer, Builder, EgressRouter, OAuthProxy}
}

// OfContainerd returns the names of the programs that run containers: containerd and the programs
// that it starts. The other programs, except the supervisor, are only parts of images.
func OfContainerd() []string { return []string{Containerd, Shim, Runc, CNI, Pause} }

// Select returns a manifest of the programs with the given names. If programs are missing, the
// error lists them.
func (m Manifest) Select(names ...string) (Manifest, error) {
	var selected Manifest
	var errs []error
	for _, name := range names {
		program, ok := m.Find(name)
		if !ok {
			errs = append(errs, fmt.Errorf("program %q is missing", name))
			continue
		}
		selected.Programs = append(selected.Programs, program)
	}
	return selected, errors.Join(errs...)
}

// Program is an embedded program.
type Program struct {
	// Name is the program's file name. The compressed program is the file Name + ".zst".
	Name string `json:"name"`
	// Size is the uncompressed size in bytes.
	Size int64 `json:"size"`
	// SHA256 is the checksum of the uncompressed content, in hexadecimal.
	SHA256 string `json:"sha256"`
	// Inputs identifies the inputs of the program's build (see hack/payload). If the inputs are
	// unchanged, the program is not rebuilt.
	Inputs string `json:"inputs,omitempty"`
}

// Archive returns the file name of the compressed program.
func (p Program) Archive() string { return p.Name + ".zst" }

// Manifest lists the embedded programs.
type Manifest struct {
	Programs []Program `json:"programs"`
}

// ID returns a short ID that can be part of a file name. It depends on the contents of all
// programs.
func (m Manifest) ID() string {
	sum := sha256.New()
	for _, program := range m.Programs {
		fmt.Fprintf(sum, "%s %d %s\n", program.Name, program.Size, program.SHA256)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Size returns the sum of the programs' uncompressed sizes, in bytes.
func (m Manifest) Size() int64 {
	var size int64
	for _, program := range m.Programs {
		size += program.Size
	}
	return size
}

// Find returns the program with the given name.
func (m Manifest) Find(name string) (Program, bool) {
	for _, program := range m.Programs {
		if program.Name == name {
			return program, true
		}
	}
	return Program{}, false
}

// Read reads the manifest in files. If the manifest does not exist, it returns fs.ErrNotExist.
func Read(files fs.FS) (Manifest, error) {
	data, err := fs.ReadFile(files, File)
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("decode %q: %w", File, err)
	}
	return m, nil
}
