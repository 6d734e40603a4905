// Package fake is a CSI driver for tests: a gRPC server with the services Identity, Controller and Node that keeps its
// volumes in memory, or in directories that it really mounts. Told nothing else it behaves as the specification wants
// (https://github.com/container-storage-interface/spec). A Plan makes it fail, delay, lose an answer, hang, crash and lie;
// Options take any capability away. A test sees what the storage holds and what was called.
package fake

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Name is the driver's name unless Options give another one.
const Name = "fake.csi.slipway.io"

// Capacity is what the storage holds unless Options say otherwise, in bytes.
const Capacity = 1 << 50

// Options say what kind of driver it is. The zero value has every capability.
type Options struct {
	Name     string            // reported by GetPluginInfo
	NodeID   string            // reported by NodeGetInfo, "node" by default
	Nodes    []string          // further node IDs to which volumes can be attached
	Topology map[string]string // of this node; a driver without one does not know topology
	Limit    int64             // volumes that can be attached to a node; 0 is no limit
	Capacity int64             // of the storage in bytes

	// LacksController, LacksNode and LacksPlugin are capabilities that the driver does not announce. What they stand for
	// is answered with Unimplemented.
	LacksController []csi.ControllerServiceCapability_RPC_Type
	LacksNode       []csi.NodeServiceCapability_RPC_Type
	LacksPlugin     []csi.PluginCapability_Service_Type
	// OfflineOnly is a driver that grows a volume only while no node has it.
	OfflineOnly bool
	// NodeExpansion is a driver whose ControllerExpandVolume asks for NodeExpandVolume.
	NodeExpansion bool

	// SnapshotSteps is how often a snapshot is asked for before it is ready to use.
	SnapshotSteps int
	// Dir makes volumes directories below it, which NodePublishVolume mounts; they hold data, but not their size.
	// Without it nothing is mounted.
	Dir string
	// Plan decides what goes wrong with a call; nil is nothing.
	Plan Plan
}

// Driver is the storage behind the server: it outlives restarts, as real storage does.
type Driver struct {
	options Options

	mu        sync.Mutex
	volumes   map[string]*Volume // by ID
	snapshots map[string]*Snapshot
	ids       int // counts, for IDs that are never used twice
	calls     []Call
	plan      Plan
	unready   bool
	health    map[string]csi.VolumeHealthErrorType

	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
}

// Volume is what the storage knows of a volume.
type Volume struct {
	ID, Name   string
	Size       int64             // bytes
	Parameters map[string]string // of CreateVolume
	Mutable    map[string]string // of CreateVolume and ControllerModifyVolume
	SnapshotID string            // that it was made from, or empty
	SourceID   string            // the volume that it was cloned from, or empty
	Topology   map[string]string
	Block      bool
	Attached   map[string]bool   // to the nodes of these IDs, and whether for reading only
	Staged     map[string]string // access by staging path
	Published  map[string]string // access by target path
}

// Snapshot is what the storage knows of a snapshot.
type Snapshot struct {
	ID, Name, SourceID string
	Size               int64 // bytes
	Created            time.Time
	Parameters         map[string]string

	asked int // how often it was looked at; ready after Options.SnapshotSteps
}

// New makes a driver without volumes.
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

// Volumes are the volumes that the storage holds, by name.
func (d *Driver) Volumes() map[string]Volume {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := map[string]Volume{}
	for _, v := range d.volumes {
		found[v.Name] = v.copy()
	}
	return found
}

// Snapshots are the snapshots that the storage holds, by name.
func (d *Driver) Snapshots() map[string]Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := map[string]Snapshot{}
	for _, s := range d.snapshots {
		found[s.Name] = *s
	}
	return found
}

// Attachments counts the nodes that volumes are attached to, over all volumes.
func (d *Driver) Attachments() (count int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range d.volumes {
		count += len(v.Attached)
	}
	return count
}

// Lose takes a volume away behind the caller's back, as an administrator of the storage can.
func (d *Driver) Lose(volumeID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.volumes, volumeID)
}

// Detach takes a volume off a node behind the caller's back.
func (d *Driver) Detach(volumeID, nodeID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.volumes[volumeID]; v != nil {
		delete(v.Attached, nodeID)
	}
}

// SetHealth makes a volume ill, or well with UNKNOWN_VOLUME_HEALTH_TYPE.
func (d *Driver) SetHealth(volumeID string, health csi.VolumeHealthErrorType) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.health[volumeID] = health
}

// SetReady decides what Probe answers; a driver is ready from the start.
func (d *Driver) SetReady(ready bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unready = !ready
}

// SetPlan decides what goes wrong from now on; nil is nothing.
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

// sortedIDs lists in a stable order, which paging needs.
func sortedIDs[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
