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
	"slices"
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
	Deployer   = "slipway-deployer"
	Builder    = "slipway-builder"

	EgressRouter = "slipway-egress-router"
	OAuthProxy   = "slipway-oauth-proxy"
)

// Names returns the programs of a complete payload in the order of unpacking.
func Names() []string {
	return []string{Containerd, Shim, Runc, CNI, Pause, Deployer, Builder, EgressRouter, OAuthProxy}
}

// inImages reports whether a program is only part of an image. Hosts do not start it.
func inImages(name string) bool {
	return slices.Contains([]string{Deployer, Builder, EgressRouter, OAuthProxy}, name)
}

// Started returns the manifest of the programs that a host starts.
func (m Manifest) Started() Manifest {
	return Manifest{Programs: slices.DeleteFunc(slices.Clone(m.Programs), func(p Program) bool { return inImages(p.Name) })}
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

// Complete returns an error that names every missing program that a host needs.
func (m Manifest) Complete() error {
	var errs []error
	for _, name := range Names() {
		if _, ok := m.Find(name); !ok && !inImages(name) {
			errs = append(errs, fmt.Errorf("program %q is missing", name))
		}
	}
	return errors.Join(errs...)
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
