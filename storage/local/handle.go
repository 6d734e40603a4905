package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Handles of volumes and snapshots have the form <node>/<file>. The node name allows a driver to
// report that a volume is on another node, instead of reporting that the volume does not exist.

func (d *Driver) handle(file string) string { return d.Node + "/" + file }

// localFile returns the file name for a handle. It returns an error if the handle is for another
// node. If the handle does not have this driver's format, no object has this handle, and file is
// "".
func (d *Driver) localFile(handle string) (file string, err error) {
	node, file, ok := cutLast(handle)
	if !ok || fileName(file) != file {
		return "", nil
	}
	if node != d.Node {
		return "", status.Errorf(codes.FailedPrecondition, "%q is on node %q, but this is node %q", handle, node, d.Node)
	}
	return file, nil
}

func cutLast(handle string) (node, file string, ok bool) {
	i := strings.LastIndexByte(handle, '/')
	if i < 0 {
		return "", "", false
	}
	return handle[:i], handle[i+1:], true
}

// volume returns the file name and the record of a volume that is in stateReady.
func (d *Driver) volume(handle string) (file string, v volume, err error) {
	file, err = d.localFile(handle)
	if err != nil {
		return "", v, err
	}
	if file == "" {
		file = fileName(handle) // the file of an ephemeral volume
	}
	v, err = d.volumes.load(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && v.State != stateReady {
		return "", v, status.Errorf(codes.NotFound, "volume %q does not exist", handle)
	}
	return file, v, err
}

// lockVolume locks a volume that is in stateReady and returns its record. The caller must call
// release unless lockVolume returns an error.
func (d *Driver) lockVolume(handle string) (file string, v volume, release func(), err error) {
	if release, err = d.locks.acquire(handle); err != nil {
		return "", v, nil, err
	}
	if file, v, err = d.volume(handle); err != nil {
		release()
		return "", v, nil, err
	}
	return file, v, release, nil
}

// lockForDelete locks a record in any state so that it can be deleted. key converts a file to its
// lock key. If there is nothing to delete, file is "", and the caller must still call release.
func lockForDelete[R record](d *Driver, records store[R], handle string, key func(file string) string) (file string, r R, release func(), err error) {
	if file, err = d.localFile(handle); err != nil || file == "" {
		return "", r, func() {}, err
	}
	if release, err = d.locks.acquire(key(file)); err != nil {
		return "", r, nil, err
	}
	r, err = records.load(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", r, release, nil
	}
	if err != nil {
		release()
		return "", r, nil, err
	}
	return file, r, release, nil
}

// snapshot returns the file name and the record of a snapshot that is in stateReady.
func (d *Driver) snapshot(handle string) (file string, s snapshot, err error) {
	file, err = d.localFile(handle)
	if err == nil && file != "" {
		s, err = d.snapshots.load(file)
	}
	if file == "" && err == nil || errors.Is(err, fs.ErrNotExist) || err == nil && s.State != stateReady {
		return "", s, status.Errorf(codes.NotFound, "snapshot %q does not exist", handle)
	}
	return file, s, err
}

// labelValue matches valid label values.
var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)

// topologyValue returns a node's value for TopologyKey: the node's name or, if the name is not a
// valid label value, its hash.
func topologyValue(node string) string {
	if labelValue.MatchString(node) {
		return node
	}
	hash := sha256.Sum256([]byte(node))
	return hex.EncodeToString(hash[:20])
}
