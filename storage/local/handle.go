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

// Handles of volumes and snapshots are <node>/<file>: a node that is asked to delete another's volume can say so instead of
// answering that there is none.

func (d *Driver) handle(file string) string { return d.Node + "/" + file }

// here takes a handle apart. The error of a handle of another node says so; file is "" for what is no handle of this driver, which therefore
// does not exist.
func (d *Driver) here(handle string) (file string, err error) {
	node, file, ok := cutLast(handle)
	if !ok || fileName(file) != file {
		return "", nil
	}
	if node != d.Node {
		return "", status.Errorf(codes.FailedPrecondition, "%q is on node %q, this is %q", handle, node, d.Node)
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

// volume reads the record of a volume that is ready.
func (d *Driver) volume(handle string) (file string, v volume, err error) {
	file, err = d.here(handle)
	if err != nil {
		return "", v, err
	}
	if file == "" {
		file = fileName(handle) // of an ephemeral volume
	}
	v, err = d.volumes.load(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && v.State != stateReady {
		return "", v, status.Errorf(codes.NotFound, "there is no volume %q", handle)
	}
	return file, v, err
}

// turn takes a volume that is ready for one operation and reads its record. Unless there is an error, release gives it back.
func (d *Driver) turn(handle string) (file string, v volume, release func(), err error) {
	if release, err = d.busy.take(handle); err != nil {
		return "", v, nil, err
	}
	if file, v, err = d.volume(handle); err != nil {
		release()
		return "", v, nil, err
	}
	return file, v, release, nil
}

// turnToDelete does the same for what is to be deleted, whatever its state; key is what busy knows it by. An empty file says that there is nothing to
// delete, here or at all; release is to be called then, too.
func turnToDelete[R record](d *Driver, records store[R], handle string, key func(file string) string) (file string, r R, release func(), err error) {
	if file, err = d.here(handle); err != nil || file == "" {
		return "", r, func() {}, err
	}
	if release, err = d.busy.take(key(file)); err != nil {
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

// snapshot reads the record of a snapshot that is ready.
func (d *Driver) snapshot(handle string) (file string, s snapshot, err error) {
	file, err = d.here(handle)
	if err == nil && file != "" {
		s, err = d.snapshots.load(file)
	}
	if file == "" && err == nil || errors.Is(err, fs.ErrNotExist) || err == nil && s.State != stateReady {
		return "", s, status.Errorf(codes.NotFound, "there is no snapshot %q", handle)
	}
	return file, s, err
}

// label are values that a label can have.
var label = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)

// topologyValue is the value of TopologyKey for a node: its name, or what stands for one that is too long for a label.
func topologyValue(node string) string {
	if label.MatchString(node) {
		return node
	}
	hash := sha256.Sum256([]byte(node))
	return hex.EncodeToString(hash[:20])
}
