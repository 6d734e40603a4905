// Package fake implements a CSI driver for tests: a gRPC server with the identity, controller and
// node services. Volumes exist in memory, or are directories that the driver bind-mounts. By
// default, the driver conforms to the specification
// (https://github.com/container-storage-interface/spec). A Plan injects faults: calls fail, are
// delayed, lose a response, hang, crash or return false responses. Options disable capabilities.
// Tests can inspect the storage and the calls.
package fake

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Name is the default name of the driver.
const Name = "fake.csi.slipway.io"

// Capacity is the default storage capacity, in bytes.
const Capacity = 1 << 50

// Options configures the driver. The zero value enables every capability.
type Options struct {
	Name     string            // the name that GetPluginInfo returns
	NodeID   string            // the ID that NodeGetInfo returns; the default is "node"
	Nodes    []string          // additional node IDs to which volumes can be attached
	Topology map[string]string // this node's topology; an empty map disables topology
	Limit    int64             // maximum number of volumes per node; 0 means no limit
	Capacity int64             // size of the storage, in bytes

	// LacksController, LacksNode and LacksPlugin list capabilities that the driver does not have.
	// The corresponding calls return Unimplemented.
	LacksController []csi.ControllerServiceCapability_RPC_Type
	LacksNode       []csi.NodeServiceCapability_RPC_Type
	LacksPlugin     []csi.PluginCapability_Service_Type
	// OfflineOnly restricts expansion to detached volumes.
	OfflineOnly bool
	// NodeExpansion makes ControllerExpandVolume require a subsequent NodeExpandVolume.
	NodeExpansion bool

	// SnapshotSteps is the number of queries after which a snapshot is ready to use.
	SnapshotSteps int
	// Dir, if set, is the directory that contains one directory for each volume. NodePublishVolume
	// bind-mounts these directories. They store data but do not enforce the volume's size. If Dir
	// is empty, nothing is mounted.
	Dir string
	// Plan determines the faults of calls. If it is nil, there are no faults.
	Plan Plan
}

// Driver is a fake driver with its storage. Like real storage, the storage survives server
// restarts.
type Driver struct {
	options Options

	mu        sync.Mutex
	volumes   map[string]*Volume // volumes by ID
	snapshots map[string]*Snapshot
	ids       int // counter for IDs
	calls     []Call
	plan      Plan
	unready   bool
	health    map[string]csi.VolumeHealthErrorType

	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
}

// Volume is a volume in the storage.
type Volume struct {
	ID, Name   string
	Size       int64             // in bytes
	Parameters map[string]string // from CreateVolume
	Mutable    map[string]string // from CreateVolume and ControllerModifyVolume
	SnapshotID string            // source snapshot, or empty
	SourceID   string            // source volume, or empty
	Topology   map[string]string
	Block      bool
	Attached   map[string]bool   // node IDs; true means read-only
	Staged     map[string]string // kind of access, by staging path
	Published  map[string]string // kind of access, by target path
}

// Snapshot is a snapshot in the storage.
type Snapshot struct {
	ID, Name, SourceID string
	Size               int64 // in bytes
	Created            time.Time
	Parameters         map[string]string

	queries int // number of queries; ready after Options.SnapshotSteps
}

// New creates a driver without volumes.
func New(options Options) *Driver {
	options.Name = orDefault(options.Name, Name)
	options.NodeID = orDefault(options.NodeID, "node")
	if options.Capacity == 0 {
		options.Capacity = Capacity
	}
	return &Driver{
		options: options, plan: options.Plan,
		volumes: map[string]*Volume{}, snapshots: map[string]*Snapshot{}, health: map[string]csi.VolumeHealthErrorType{},
	}
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// Volumes returns the volumes in the storage, keyed by name.
func (d *Driver) Volumes() map[string]Volume {
	d.mu.Lock()
	defer d.mu.Unlock()
	volumes := map[string]Volume{}
	for _, v := range d.volumes {
		volumes[v.Name] = v.copy()
	}
	return volumes
}

// Snapshots returns the snapshots in the storage, keyed by name.
func (d *Driver) Snapshots() map[string]Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	snapshots := map[string]Snapshot{}
	for _, s := range d.snapshots {
		snapshots[s.Name] = *s
	}
	return snapshots
}

// Attachments returns the total number of attachments of all volumes.
func (d *Driver) Attachments() (count int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range d.volumes {
		count += len(v.Attached)
	}
	return count
}

// Lose deletes a volume without a DeleteVolume call, as a storage administrator could.
func (d *Driver) Lose(volumeID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.volumes, volumeID)
}

// Detach marks a volume as detached from a node without a ControllerUnpublishVolume call.
func (d *Driver) Detach(volumeID, nodeID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.volumes[volumeID]; v != nil {
		delete(v.Attached, nodeID)
	}
}

// SetHealth sets a volume's health. UNKNOWN_VOLUME_HEALTH_TYPE means healthy.
func (d *Driver) SetHealth(volumeID string, health csi.VolumeHealthErrorType) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.health[volumeID] = health
}

// SetReady sets the readiness that Probe returns. A driver is ready by default.
func (d *Driver) SetReady(ready bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unready = !ready
}

// SetPlan sets the faults of later calls. If plan is nil, there are no faults.
func (d *Driver) SetPlan(plan Plan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.plan = plan
}

func (v *Volume) copy() Volume {
	c := *v
	c.Parameters, c.Mutable, c.Attached = maps.Clone(v.Parameters), maps.Clone(v.Mutable), maps.Clone(v.Attached)
	c.Staged, c.Published = maps.Clone(v.Staged), maps.Clone(v.Published)
	return c
}

// sortedIDs returns the IDs in a stable order, which paging requires.
func sortedIDs[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
