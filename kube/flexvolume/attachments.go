package flexvolume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	engine "github.com/slipway-platform/slipway/storage/flexvolume"
)

// Attachments are the volumes that this process, and those before it, have attached to nodes and not yet detached. Upstream forgets some when it is
// restarted: the controller goes by the status of nodes, which has a volume after attach has ended and until detach begins; kubelet, where it
// attaches by itself, has no record at all. Here each attachment is noted, in an empty file, from before attach until after detach.
type Attachments struct {
	// Dir has the notes, <dir>/<vendor~driver>/<node>/<volume>. It is made where it is missing. Empty: there are none.
	Dir string

	mu    sync.Mutex
	known map[attachment]*attached
}

// attachment is a volume, by its name in its storage, at a node.
type attachment struct{ driver, node, volume string }

// attached is what this process knows of an attachment.
type attached struct {
	// own: this process has attached it, so that upstream knows of it.
	own bool
	// leaving: a detach runs of which upstream does not know.
	leaving bool
}

func (a attachment) String() string {
	return fmt.Sprintf("volume %q of FlexVolume driver %q at node %q", a.volume, a.driver, a.node)
}

// add notes an attachment, before the driver is called. It is an error while the volume is still being detached from before a restart.
func (s *Attachments) add(a attachment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state(a)
	if state.leaving {
		return fmt.Errorf("attach %v: it is still being detached", a)
	}
	state.own = true
	if s.Dir == "" {
		return nil
	}
	note := s.note(a)
	err := os.MkdirAll(filepath.Dir(note), 0o700)
	if err == nil {
		err = os.WriteFile(note, nil, 0o600)
	}
	if err == nil {
		err = atomicfile.SyncFolder(filepath.Dir(note))
	}
	if err != nil {
		return fmt.Errorf("note attachment of %v: %w", a, err)
	}
	return nil
}

// remove drops an attachment, after the driver has been called.
func (s *Attachments) remove(a attachment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, a)
	if s.Dir == "" {
		return nil
	}
	if err := os.Remove(s.note(a)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove note of %v: %w", a, err)
	}
	return nil
}

// attachedHere says whether this process has attached the volume to any node.
func (s *Attachments) attachedHere(driver, volume string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a, state := range s.known {
		if a.driver == driver && a.volume == volume && state.own {
			return true
		}
	}
	return false
}

// leave runs detach for an attachment of an earlier process, and drops it if that succeeds. done says that there is nothing left to do,
// also because this process has attached the volume meanwhile.
func (s *Attachments) leave(a attachment, detach func() error) (done bool, err error) {
	s.mu.Lock()
	state := s.state(a)
	if state.own || state.leaving {
		s.mu.Unlock()
		return state.own, nil
	}
	state.leaving = true
	s.mu.Unlock()

	err = detach()
	s.mu.Lock()
	state.leaving = false
	s.mu.Unlock()
	if err != nil {
		return false, err
	}
	return true, s.remove(a)
}

// noted says whether there is a note of the attachment.
func (s *Attachments) noted(a attachment) bool {
	if s.Dir == "" {
		return false
	}
	_, err := os.Stat(s.note(a))
	return err == nil
}

// all are the attachments that have a note.
func (s *Attachments) all() []attachment {
	var list []attachment
	notes, _ := filepath.Glob(filepath.Join(s.Dir, "*", "*", "*")) // the pattern is a good one
	for _, note := range notes {
		node := filepath.Dir(note)
		list = append(list, attachment{
			driver: engine.UnescapeName(filepath.Base(filepath.Dir(node))), node: filepath.Base(node), volume: filepath.Base(note),
		})
	}
	return list
}

func (s *Attachments) note(a attachment) string {
	return filepath.Join(s.Dir, engine.EscapeName(a.driver), a.node, a.volume)
}

// state is what is known of an attachment. The caller holds mu.
func (s *Attachments) state(a attachment) *attached {
	if s.known == nil {
		s.known = map[attachment]*attached{}
	}
	if s.known[a] == nil {
		s.known[a] = &attached{}
	}
	return s.known[a]
}
