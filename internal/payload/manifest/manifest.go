// Package manifest describes the native programs that are embedded in the slipway binary: what hack/payload writes
// beside the compressed programs and internal/payload reads.
//
// The description makes starting cheap: the programs' version, sizes and checksums are known without reading them.
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
)

// Names returns the programs that a complete payload has, in the order in which they are unpacked.
func Names() []string {
	return []string{Containerd, Shim, Runc, CNI, Pause, Deployer, Builder}
}

// inImages says whether a program only becomes part of an image: no host starts it.
func inImages(name string) bool { return name == Deployer || name == Builder }

// Started returns the manifest of those programs that a host starts itself.
func (m Manifest) Started() Manifest {
	return Manifest{Programs: slices.DeleteFunc(slices.Clone(m.Programs), func(p Program) bool { return inImages(p.Name) })}
}

// Program is one embedded program.
type Program struct {
	// Name is the program's file name. Its compressed form is the file Name + ".zst".
	Name string `json:"name"`
	// Size is its size in bytes, uncompressed.
	Size int64 `json:"size"`
	// SHA256 is the checksum of its uncompressed content, in hexadecimal.
	SHA256 string `json:"sha256"`
	// Inputs identifies what it was built from (see hack/payload): the same inputs need no new build.
	Inputs string `json:"inputs,omitempty"`
}

// Archive is the name of the program's compressed form among the embedded files.
func (p Program) Archive() string { return p.Name + ".zst" }

// Manifest lists the embedded programs.
type Manifest struct {
	Programs []Program `json:"programs"`
}

// ID is short, fit for a file name, and differs whenever the content of any program differs.
func (m Manifest) ID() string {
	sum := sha256.New()
	for _, program := range m.Programs {
		fmt.Fprintf(sum, "%s %d %s\n", program.Name, program.Size, program.SHA256)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Size is the sum of the uncompressed sizes, in bytes.
func (m Manifest) Size() int64 {
	var size int64
	for _, program := range m.Programs {
		size += program.Size
	}
	return size
}

// Find returns the program of that name.
func (m Manifest) Find(name string) (Program, bool) {
	for _, program := range m.Programs {
		if program.Name == name {
			return program, true
		}
	}
	return Program{}, false
}

// Complete returns an error that names every program that a host needs to start and that is missing, or nil.
func (m Manifest) Complete() error {
	var errs []error
	for _, name := range Names() {
		if _, ok := m.Find(name); !ok && !inImages(name) {
			errs = append(errs, fmt.Errorf("program %q is missing", name))
		}
	}
	return errors.Join(errs...)
}

// Read reads the manifest among files. Where there is none, the error is fs.ErrNotExist.
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
