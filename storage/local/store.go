package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/storage/local/filesystem"
)

// state is how far a volume or snapshot is.
type state string

// An image belongs to its record from the first state to the last: it is created after the record, and removed before.
const (
	stateCreating state = "creating"
	stateReady    state = "ready"
	stateDeleting state = "deleting"
)

func (s state) known() bool {
	return slices.Contains([]state{stateCreating, stateReady, stateDeleting}, s)
}

// volume is the record of a volume.
type volume struct {
	// Name is the name that CreateVolume was called with, or for an ephemeral volume its handle.
	Name  string `json:"name"`
	State state  `json:"state"`
	// Size is what the volume holds in bytes, and what is promised of the disk.
	Size int64 `json:"size"`
	// Filesystem is what is in the image; it is empty for a raw block volume.
	Filesystem filesystem.Type `json:"filesystem,omitempty"`
	Allocation allocation      `json:"allocation"`
	// Snapshot or Volume is the handle of what the volume was made from.
	Snapshot string `json:"snapshot,omitempty"`
	Volume   string `json:"volume,omitempty"`
	// Target is the path where an ephemeral volume is published; it is empty for any other.
	Target string `json:"target,omitempty"`
	// Used is when a cache was last given to a pod; it is zero for any other volume.
	Used time.Time `json:"used,omitzero"`
}

// snapshot is the record of a snapshot.
type snapshot struct {
	Name       string          `json:"name"`
	State      state           `json:"state"`
	Size       int64           `json:"size"`
	Filesystem filesystem.Type `json:"filesystem,omitempty"`
	// Volume is the handle of the volume that it is of.
	Volume  string    `json:"volume"`
	Created time.Time `json:"created"`
	// Group is the handle of the group that it was taken with, if it was.
	Group string `json:"group,omitempty"`
}

// record is one of those.
type record interface {
	volume | snapshot | group
	check(file string) error
}

func (v volume) check(file string) error {
	return checkRecord(file, v.Name, v.State, v.Size, v.Filesystem)
}

func (s snapshot) check(file string) error {
	return checkRecord(file, s.Name, s.State, s.Size, s.Filesystem)
}

// checkRecord finds values that this package does not write.
func checkRecord(file, name string, s state, size int64, t filesystem.Type) error {
	switch {
	case fileName(name) != file:
		return fmt.Errorf("it is the record of %q", name)
	case !s.known():
		return fmt.Errorf("state %q is none", s)
	case size <= 0:
		return fmt.Errorf("size %d is none", size)
	case t != "" && !t.Known():
		return fmt.Errorf("file system %q is none of %v", t, filesystem.Types())
	}
	return nil
}

// plain are names that are file names too.
var plain = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,99}$`)

// fileName is the name of a volume's or snapshot's files, less their endings.
func fileName(name string) string {
	if plain.MatchString(name) {
		return name
	}
	hash := sha256.Sum256([]byte(name))
	return "hash-" + hex.EncodeToString(hash[:20])
}

// store is a folder of records and images.
type store[R record] struct{ dir string }

func openStore[R record](dir, name string) store[R] { return store[R]{filepath.Join(dir, name)} }

func (s store[R]) record(file string) string { return filepath.Join(s.dir, file+".json") }
func (s store[R]) image(file string) string  { return filepath.Join(s.dir, file+".img") }
func (s store[R]) larger(file string) string { return filepath.Join(s.dir, file+".larger") } // a copy of the image that is being grown

// damagedError says that a record cannot be trusted.
type damagedError struct {
	path  string
	cause error
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("record %q is damaged: %v; restore it from a backup, or remove it and the image beside it to give up what they hold", e.path, e.cause)
}

// load reads a record; the error of one that does not exist is fs.ErrNotExist.
func (s store[R]) load(file string) (R, error) {
	var r R
	content, err := os.ReadFile(s.record(file))
	if err != nil {
		return r, fmt.Errorf("read record: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&r)
	if err == nil {
		err = r.check(file)
	}
	if err != nil {
		return r, &damagedError{s.record(file), err}
	}
	return r, nil
}

// save puts a record on the disk.
func (s store[R]) save(file string, r R) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	return atomicfile.Write(s.record(file), append(content, '\n'), 0o600)
}

// remove removes the images, then the record. What does not exist is no error.
func (s store[R]) remove(file string) error {
	for _, path := range []string{s.larger(file), s.image(file), s.record(file)} {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = atomicfile.SyncFolder(s.dir)
		}
		if err != nil {
			return fmt.Errorf("remove: %w", err)
		}
	}
	return nil
}

// files are the sorted names of all records.
func (s store[R]) files() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".json"); ok && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names, nil
}

// all are the records that can be read; the errors of the others are added to problems.
func (s store[R]) all(problems *[]error) iter.Seq2[string, R] {
	return func(yield func(string, R) bool) {
		files, err := s.files()
		if err != nil {
			*problems = append(*problems, err)
		}
		for _, file := range files {
			r, err := s.load(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed since the folder was read
			}
			if err != nil {
				*problems = append(*problems, err)
				continue
			}
			if !yield(file, r) {
				return
			}
		}
	}
}

// strays is the error of images without a record. No crash leaves one, so they may be somebody's data.
func (s store[R]) strays() error {
	images, err := filepath.Glob(filepath.Join(s.dir, "*.img"))
	for _, path := range images {
		if _, statErr := os.Stat(s.record(strings.TrimSuffix(filepath.Base(path), ".img"))); errors.Is(statErr, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("image %q has no record beside it: restore the record from a backup, or remove the image", path))
		}
	}
	return err
}
