package volumeplugin

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/slipway-platform/slipway/internal/keylock"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// Attachments calls drivers to attach, detach and expand volumes. It records the volumes that this
// process and earlier processes have attached to nodes and not yet detached. Upstream loses track
// of some attachments when it restarts. The controller relies on node statuses, which list a volume
// only after its attach has finished and before its detach starts. A kubelet that attaches volumes
// itself has no record. A record in Attachments exists from before attach until after detach.
type Attachments struct {
	// Dir is the directory that contains the records. It is created if it does not exist. If Dir is
	// empty, nothing is recorded.
	Dir string
	// Shared, if set, receives new records instead of Dir. It is set if there are several masters.
	Shared *SharedRecords

	locks keylock.Locks // one lock per volume, held during driver calls and record changes

	mu sync.Mutex
	// attachedHere holds the volumes that this process attached. Upstream tracks the state of these
	// volumes.
	attachedHere map[attachment]bool
}

// attachment identifies an attached volume. volume is the volume's storage name. In a call that
// expands a volume, node is empty.
type attachment struct{ driver, node, volume string }

func (a attachment) String() string {
	if a.node == "" {
		return fmt.Sprintf("volume %q of FlexVolume driver %q", a.volume, a.driver)
	}
	return fmt.Sprintf("volume %q of FlexVolume driver %q on node %q", a.volume, a.driver, a.node)
}

// key returns a key that identifies the volume.
func (a attachment) key() string { return a.driver + "/" + a.volume }

// callSlack is how long a call may exceed the driver's timeout, because the record must be written
// before the driver is called.
const callSlack = 2 * recordTimeout

// attach runs a driver call that attaches a volume. The attachment is recorded before the call.
func (s *Attachments) attach(c call, run func(context.Context) error) error {
	defer s.locks.Lock(c.key())()
	s.setAttachedHere(c.attachment, true)
	c.attach = true
	return s.call(context.Background(), c, run)
}

// detach runs a driver call that detaches a volume, and removes its record on success.
func (s *Attachments) detach(c call, run func(context.Context) error) error {
	defer s.locks.Lock(c.key())()
	return s.call(context.Background(), c, run)
}

// expand runs a driver call that expands a volume. The records of its attachments do not change.
func (s *Attachments) expand(c call, run func(context.Context) error) error {
	defer s.locks.Lock(c.key())()
	return s.call(context.Background(), c, run)
}

// release detaches a volume that an earlier process attached. complete is true if no further
// attempt is needed, for example because this process has attached the volume since then.
func (s *Attachments) release(ctx context.Context, registry *flexvolume.Registry, a attachment) (complete bool, err error) {
	driver, err := registry.InUse(a.driver)
	if err != nil {
		return false, err
	}
	c := call{attachment: a, timeout: driver.Timeout(flexvolume.OpDetach)}
	return s.detachStale(ctx, c, func(ctx context.Context) error { return driver.Detach(ctx, a.volume, a.node) })
}

func (s *Attachments) detachStale(ctx context.Context, c call, run func(context.Context) error) (complete bool, err error) {
	defer s.locks.Lock(c.key())()
	if s.isAttachedHere(c.attachment) {
		return true, nil
	}
	if err := s.call(ctx, c, run); err != nil && !errors.Is(err, flexvolume.ErrNotSupported) {
		return false, err
	}
	return true, nil
}

// call records the start of a driver call, calls the driver, and then records the result. The
// caller must hold the volume's lock.
func (s *Attachments) call(ctx context.Context, c call, run func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout+callSlack)
	defer cancel()
	end, err := s.records().begin(c)
	if err != nil {
		return err
	}
	err = run(ctx)
	unsupported := errors.Is(err, flexvolume.ErrNotSupported)
	switch kind := flexvolume.KindOf(err); {
	case kind == flexvolume.KindTimeout || kind == flexvolume.KindCanceled || kind == flexvolume.KindBusy:
		// The driver's processes, or the processes of an earlier call that timed out, might still
		// exist. Therefore, the record must not state that the call has ended.
		return err
	case c.attach || err != nil && !unsupported:
		return errors.Join(err, end(true))
	case c.node == "":
		if endErr := end(false); endErr != nil {
			return endErr
		}
		return err
	}
	if endErr := errors.Join(end(false), s.forget(c.attachment)); endErr != nil {
		return endErr
	}
	return err
}

// remove removes the record of a volume that is no longer attached to the node, according to the
// driver.
func (s *Attachments) remove(a attachment) error {
	defer s.locks.Lock(a.key())()
	if err := s.records().remove(a); err != nil {
		return err
	}
	return s.forget(a)
}

// forget removes this host's data about an attachment.
func (s *Attachments) forget(a attachment) error {
	s.setAttachedHere(a, false)
	if s.Dir == "" {
		return nil
	}
	return directory(s.Dir).remove(a) // the record might be older than the other masters
}

func (s *Attachments) records() records {
	switch {
	case s.Shared != nil:
		return s.Shared
	case s.Dir != "":
		return directory(s.Dir)
	}
	return unrecorded{}
}

func (s *Attachments) setAttachedHere(a attachment, attached bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !attached {
		delete(s.attachedHere, a)
		return
	}
	if s.attachedHere == nil {
		s.attachedHere = map[attachment]bool{}
	}
	s.attachedHere[a] = true
}

func (s *Attachments) isAttachedHere(a attachment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attachedHere[a]
}

// attachedByProcess reports whether this process has attached the volume to any node.
func (s *Attachments) attachedByProcess(driver, volume string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.attachedHere {
		if a.driver == driver && a.volume == volume {
			return true
		}
	}
	return false
}

// isRecorded reports whether the attachment has a record in Dir.
func (s *Attachments) isRecorded(a attachment) bool {
	return s.Dir != "" && directory(s.Dir).has(a)
}

// list returns all attachments that are recorded in Dir.
func (s *Attachments) list() []attachment { return directory(s.Dir).list() }
