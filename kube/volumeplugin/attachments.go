package volumeplugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// Attachments records the volumes that this process and earlier processes have attached to nodes
// and not yet detached. Upstream loses some attachments in a restart. The controller relies on node
// statuses, which list a volume only after its attach has finished and before its detach starts. A
// kubelet that attaches volumes itself has no record. Each attachment is recorded as an empty file,
// which exists from before attach until after detach.
type Attachments struct {
	// Dir contains the records, as <dir>/<vendor~driver>/<node>/<volume>. It is created if it does
	// not exist. If Dir is empty, nothing is recorded.
	Dir string
	// Shared, if set, receives new records instead of Dir. It is set on each of several masters.
	Shared *SharedRecords

	mu     sync.Mutex
	states map[attachment]*attachmentState
}

// attachment identifies an attached volume. volume is the volume's storage name.
type attachment struct{ driver, node, volume string }

// attachmentState is an attachment's state in this process.
type attachmentState struct {
	// attachedHere means that this process attached the volume, so upstream tracks its state.
	attachedHere bool
	// detaching means that a detach is running that upstream did not start.
	detaching bool
}

func (a attachment) String() string {
	return fmt.Sprintf("volume %q of FlexVolume driver %q on node %q", a.volume, a.driver, a.node)
}

// add records an attachment before the driver is called. It fails while a volume that an earlier
// process attached is being detached.
func (s *Attachments) add(a attachment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state(a)
	if state.detaching {
		return fmt.Errorf("attach %v: it is still being detached", a)
	}
	state.attachedHere = true
	if s.Shared != nil {
		if err := s.Shared.add(a); err != nil {
			return fmt.Errorf("record attachment of %v: %w", a, err)
		}
		return nil
	}
	if s.Dir == "" {
		return nil
	}
	path := s.recordPath(a)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err == nil {
		err = atomicfile.SyncFolder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("record attachment of %v: %w", a, err)
	}
	return nil
}

// remove removes the record of an attachment after the driver has detached the volume.
func (s *Attachments) remove(a attachment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.states, a)
	return s.removeRecord(a)
}

func (s *Attachments) removeRecord(a attachment) error {
	if s.Shared != nil {
		if err := s.Shared.remove(a); err != nil {
			return fmt.Errorf("remove record of %v: %w", a, err)
		}
	}
	if s.Dir == "" {
		return nil
	}
	if err := os.Remove(s.recordPath(a)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of %v: %w", a, err)
	}
	return nil
}

// attachedByProcess reports whether this process has attached the volume to any node.
func (s *Attachments) attachedByProcess(driver, volume string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a, state := range s.states {
		if a.driver == driver && a.volume == volume && state.attachedHere {
			return true
		}
	}
	return false
}

// detachStale detaches a volume that an earlier process attached, and removes its record on
// success. complete is true if no further attempt is needed, for example because this process has
// attached the volume since then. complete is false without an error if another detach is running.
func (s *Attachments) detachStale(a attachment, detach func() error) (complete bool, err error) {
	s.mu.Lock()
	state := s.state(a)
	if state.attachedHere || state.detaching {
		defer s.mu.Unlock()
		return state.attachedHere, nil
	}
	state.detaching = true
	s.mu.Unlock()

	err = detach()
	// Hold the lock until the record is removed, so that add cannot write a new record
	// concurrently.
	s.mu.Lock()
	defer s.mu.Unlock()
	state.detaching = false
	if err == nil {
		err = s.removeRecord(a)
	}
	if err != nil {
		return false, err
	}
	delete(s.states, a)
	return true, nil
}

// isRecorded reports whether the attachment has a record in Dir.
func (s *Attachments) isRecorded(a attachment) bool {
	if s.Dir == "" {
		return false
	}
	_, err := os.Stat(s.recordPath(a))
	return err == nil
}

// list returns all attachments that are recorded in Dir.
func (s *Attachments) list() []attachment {
	var list []attachment
	// Glob fails only if the pattern is invalid.
	paths, _ := filepath.Glob(filepath.Join(s.Dir, "*", "*", "*"))
	for _, path := range paths {
		node := filepath.Dir(path)
		list = append(list, attachment{
			driver: flexvolume.UnescapeName(filepath.Base(filepath.Dir(node))), node: filepath.Base(node), volume: filepath.Base(path),
		})
	}
	return list
}

func (s *Attachments) recordPath(a attachment) string {
	return filepath.Join(s.Dir, flexvolume.EscapeName(a.driver), a.node, a.volume)
}

// state returns an attachment's state. The caller must hold mu.
func (s *Attachments) state(a attachment) *attachmentState {
	if s.states == nil {
		s.states = map[attachment]*attachmentState{}
	}
	if s.states[a] == nil {
		s.states[a] = &attachmentState{}
	}
	return s.states[a]
}
