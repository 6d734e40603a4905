// Package record reads and writes a host's records of its role in a cluster, and of the control
// plane components that an administrator has stopped.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// Membership is the record of a host that has joined a cluster. It is stored in
// node/membership.json in the data directory. The file is created only after the host has received
// all its credentials.
type Membership struct {
	// Masters lists the host:port addresses of the API servers.
	Masters []string `json:"masters"`
	// Registry is the host:port address of the image registry, or "".
	Registry string `json:"registry"`
	// Router means that the host runs a router.
	Router bool `json:"router"`
}

// Cluster is the record of a host that is one of several masters. It is stored in
// master/cluster.json in the data directory. A host without this file is the only master or only a
// node.
type Cluster struct {
	// Etcd is the list of etcd members that this host's member requires for its first start. It is
	// empty on the first master.
	Etcd string `json:"etcd,omitempty"`
	// Registry is the host:port address of the image registry on another master. It is empty on the
	// first master, which runs the registry. It is ignored if all masters share the registry's
	// storage.
	Registry string `json:"registry,omitempty"`
	// Complete means that the host has all files of a master. It is false during a join.
	Complete bool `json:"complete"`
	// Reset means that etcd continues with only this host's data on its next start.
	Reset bool `json:"reset,omitempty"`
}

// ReadMembership reads a joined host's record. It returns nil if the host has not joined a cluster.
// It also returns nil if the user is not allowed to read the record, because the user then has no
// access to the host either.
func ReadMembership(path string) (*Membership, error) {
	return read[Membership](path, "membership of the host", "restore the file, or remove it to run `slipway down --purge` and join again")
}

// Write replaces the record.
func (m Membership) Write(path string) error { return write(path, "membership of the host", m) }

// ReadCluster reads the record of one of several masters. It returns nil if there is no record. It
// also returns nil if the user is not allowed to read the record, because the user then has no
// access to the host either.
func ReadCluster(path string) (*Cluster, error) {
	return read[Cluster](path, "record of the masters", "restore the file")
}

// Write replaces the record.
func (c Cluster) Write(path string) error { return write(path, "record of the masters", c) }

// ReadStopped returns the control plane components that the administrator has stopped on this host.
func ReadStopped(path string) ([]string, error) {
	parts, err := read[[]string](path, "record of stopped components", "remove the file")
	if err != nil || parts == nil {
		return nil, err
	}
	return *parts, nil
}

// SetStopped records whether a component is stopped. If no component is stopped, SetStopped removes
// the file.
func SetStopped(path, part string, stopped bool) error {
	parts, err := ReadStopped(path)
	if err != nil {
		return err
	}
	parts = slices.DeleteFunc(parts, func(other string) bool { return other == part })
	if stopped {
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		return write(path, "record of stopped components", parts)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of stopped components: %w", err)
	}
	return nil
}

// read decodes a record. It returns nil if the record does not exist or the user is not allowed to
// read it. remedy explains how to repair a corrupt file.
func read[T any](path, name, remedy string) (*T, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	content := new(T)
	if err := json.Unmarshal(data, content); err != nil {
		return nil, fmt.Errorf("read %s %q: %w; %s", name, path, err, remedy)
	}
	return content, nil
}

func write(path, name string, content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return atomicfile.Write(path, data, 0o600)
}
