// Package manifest describes the native programs that are embedded in the slipway binary.
// hack/payload writes the manifest next to the compressed programs, and internal/payload reads it.
//
// The manifest contains the version, size and checksum of each program, so that a start can check
// unpacked programs by size, mode and modification time, without reading or decompressing them.
package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// File is the name of the manifest among the embedded files.
const File = "manifest.json"

// The programs of the payload.
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

// Names returns the programs of a complete payload in the order of unpacking.
func Names() []string {
	return []string{Containerd, Shim, Runc, CNI, Pause, Supervisor, Deployer, Builder, EgressRouter, OAuthProxy}
}

// OfContainerd returns the names of the programs that run containers: containerd and the programs
// that it starts. The others, except the supervisor, are only part of images.
func OfContainerd() []string { return []string{Containerd, Shim, Runc, CNI, Pause} }

// Select returns the manifest of some programs. If programs are missing, the error names each.
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

// Program is one embedded program.
type Program struct {
	// Name is the file name of the program. Its compressed form is the file Name + ".zst".
	Name string `json:"name"`
	// Size is the uncompressed size in bytes.
	Size int64 `json:"size"`
	// SHA256 is the checksum of the uncompressed content, in hexadecimal.
	SHA256 string `json:"sha256"`
	// Inputs identifies the inputs of the program's build (see hack/payload). Unchanged inputs need
	// no new build.
	Inputs string `json:"inputs,omitempty"`
}

// Archive returns the file name of the program's compressed form.
func (p Program) Archive() string { return p.Name + ".zst" }

// Manifest lists the embedded programs.
type Manifest struct {
	Programs []Program `json:"programs"`
}

// ID returns a short ID that is valid in a file name. It depends on the content of all programs.
func (m Manifest) ID() string {
	sum := sha256.New()
	for _, program := range m.Programs {
		fmt.Fprintf(sum, "%s %d %s\n", program.Name, program.Size, program.SHA256)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Size returns the sum of the uncompressed sizes in bytes.
func (m Manifest) Size() int64 {
	var size int64
	for _, program := range m.Programs {
		size += program.Size
	}
	return size
}

// Find returns the program with a name.
func (m Manifest) Find(name string) (Program, bool) {
	for _, program := range m.Programs {
		if program.Name == name {
			return program, true
		}
	}
	return Program{}, false
}

// Read reads the manifest in files. If there is none, the error is fs.ErrNotExist.
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
