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

// state is the state of a volume, snapshot or group.
type state string

// An image is created after its record and removed before its record, so every image has a record.
const (
	stateCreating state = "creating"
	stateReady    state = "ready"
	stateDeleting state = "deleting"
)

func (s state) valid() bool {
	return slices.Contains([]state{stateCreating, stateReady, stateDeleting}, s)
}

// volume is the record of a volume.
type volume struct {
	// Name is the name from CreateVolume, or the handle of an ephemeral volume.
	Name  string `json:"name"`
	State state  `json:"state"`
	// Size is the volume's size and committed capacity, in bytes.
	Size int64 `json:"size"`
	// Filesystem is the file system type. It is empty for a raw block volume.
	Filesystem filesystem.Type `json:"filesystem,omitempty"`
	Allocation allocation      `json:"allocation"`
	// Snapshot or Volume is the handle of the content source, if any.
	Snapshot string `json:"snapshot,omitempty"`
	Volume   string `json:"volume,omitempty"`
	// Target is the path at which an ephemeral volume is published. It is empty for other volumes.
	Target string `json:"target,omitempty"`
	// Used is the time when a cache was last published. It is zero for other volumes.
	Used time.Time `json:"used,omitzero"`
}

// snapshot is the record of a snapshot.
type snapshot struct {
	Name       string          `json:"name"`
	State      state           `json:"state"`
	Size       int64           `json:"size"`
	Filesystem filesystem.Type `json:"filesystem,omitempty"`
	// Volume is the handle of the source volume.
	Volume  string    `json:"volume"`
	Created time.Time `json:"created"`
	// Group is the handle of the group that the snapshot belongs to, if any.
	Group string `json:"group,omitempty"`
	// Reserved is the capacity that is committed until the snapshot's image is complete, in bytes.
	Reserved int64 `json:"reserved,omitempty"`
}

// record is the type constraint for records.
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

// checkRecord returns an error for values that this package never writes.
func checkRecord(file, name string, s state, size int64, t filesystem.Type) error {
	switch {
	case fileName(name) != file:
		return fmt.Errorf("it is the record of %q", name)
	case !s.valid():
		return fmt.Errorf("invalid state %q", s)
	case size <= 0:
		return fmt.Errorf("invalid size %d", size)
	case t != "" && !t.Supported():
		return fmt.Errorf("file system %q is not one of %v", t, filesystem.Types())
	}
	return nil
}

// plainName matches names that are valid file names.
var plainName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,99}$`)

// fileName returns the file name of a volume or snapshot, without the extension.
func fileName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	hash := sha256.Sum256([]byte(name))
	return "hash-" + hex.EncodeToString(hash[:20])
}

// store is a directory of records and images.
type store[R record] struct{ dir string }

func openStore[R record](dir, name string) store[R] { return store[R]{filepath.Join(dir, name)} }

func (s store[R]) record(file string) string { return filepath.Join(s.dir, file+".json") }
func (s store[R]) image(file string) string  { return filepath.Join(s.dir, file+".img") }

// expandedImage returns the path of the copy of an image that expandOffline expands.
func (s store[R]) expandedImage(file string) string { return filepath.Join(s.dir, file+".larger") }

// corruptRecordError is the error for a record that cannot be read.
type corruptRecordError struct {
	path  string
	cause error
}

func (e *corruptRecordError) Error() string {
	return fmt.Sprintf("record %q is corrupt: %v; restore it from a backup, or delete the record and its image to give up the data", e.path, e.cause)
}

// load reads a record. The error is fs.ErrNotExist if the record does not exist.
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
		return r, &corruptRecordError{s.record(file), err}
	}
	return r, nil
}

// save writes and syncs a record.
func (s store[R]) save(file string, r R) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	return atomicfile.Write(s.record(file), append(content, '\n'), 0o600)
}

// remove removes the images, then the record. It ignores missing files.
func (s store[R]) remove(file string) error {
	for _, path := range []string{s.expandedImage(file), s.image(file), s.record(file)} {
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

// files returns the sorted names of all records.
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

// all iterates over the records. For each record that it cannot read, it appends an error to errs.
func (s store[R]) all(errs *[]error) iter.Seq2[string, R] {
	return func(yield func(string, R) bool) {
		files, err := s.files()
		if err != nil {
			*errs = append(*errs, err)
		}
		for _, file := range files {
			r, err := s.load(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue // the record was removed in the meantime
			}
			if err != nil {
				*errs = append(*errs, err)
				continue
			}
			if !yield(file, r) {
				return
			}
		}
	}
}

// checkOrphans returns an error for each image that has no record. A crash cannot cause this
// situation, so the image might contain a user's data.
func (s store[R]) checkOrphans() error {
	images, err := filepath.Glob(filepath.Join(s.dir, "*.img"))
	for _, path := range images {
		if _, statErr := os.Stat(s.record(strings.TrimSuffix(filepath.Base(path), ".img"))); errors.Is(statErr, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("image %q has no record; restore the record from a backup, or delete the image", path))
		}
	}
	return err
}
