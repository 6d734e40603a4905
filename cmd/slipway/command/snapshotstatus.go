package command

import (
	"fmt"
	"time"

	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/platform/snapshot"
)

// snapshotStatus describes the scheduled etcd snapshots on this master.
type snapshotStatus struct {
	Disabled  bool   `json:"disabled,omitempty"`
	Directory string `json:"directory"`
	Count     int    `json:"count"`
	// Newest is the time of the newest snapshot, or nil if there are no snapshots.
	Newest *time.Time `json:"newest,omitempty"`
}

// snapshotsOf returns the status of this master's snapshots. It returns nil if the host is only a
// node, or if the user has no access to the snapshots.
func snapshotsOf(h *host.Host) *snapshotStatus {
	if h.Joined() {
		return nil
	}
	settings := h.Master.Slipway.EtcdSnapshots
	files, err := snapshot.List(settings.Directory)
	if err != nil {
		return nil
	}
	status := &snapshotStatus{Disabled: settings.Disabled, Directory: settings.Directory, Count: len(files)}
	if len(files) > 0 {
		status.Newest = &files[len(files)-1].Time
	}
	return status
}

// String returns the status as a line for `slipway status`.
func (s *snapshotStatus) String() string {
	text := fmt.Sprintf("etcd snapshots: %d in %s", s.Count, s.Directory)
	if s.Newest != nil {
		text += fmt.Sprintf(", the newest is %s old", age(*s.Newest))
	}
	if s.Disabled {
		text += "; no new snapshots are saved (slipway.etcdSnapshots.disabled)"
	}
	return text
}
