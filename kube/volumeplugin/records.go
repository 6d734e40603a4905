package volumeplugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// records stores which volumes are, or might be, attached to which nodes.
type records interface {
	// begin must be called before each driver call that attaches, detaches or expands the volume. It
	// returns an error if the driver must not be called. After the call, end records whether the
	// volume might be attached to the node.
	begin(c call) (end func(attached bool) error, err error)
	// remove removes the record of an attachment that the driver does not have.
	remove(a attachment) error
}

// call is a driver call that attaches, detaches or expands a volume.
type call struct {
	attachment
	attach bool
	// exclusive means that the volume must not be attached to another node.
	exclusive bool
	// timeout is the driver's timeout for the operation.
	timeout time.Duration
}

// elsewhereError is the error for an exclusive volume that might be attached to other nodes.
type elsewhereError struct {
	attachment
	nodes []string
}

func (e elsewhereError) Error() string {
	nodes := strings.Join(e.nodes, " ")
	return fmt.Sprintf("attach %v: it must first be detached from node %s; if the node is off, run: oc delete node %s", e.attachment, nodes, nodes)
}

// directory stores the records of one process, as <directory>/<vendor~driver>/<node>/<volume>. Each
// record is an empty file.
type directory string

func (d directory) begin(c call) (end func(attached bool) error, err error) {
	if c.attach {
		if err := d.add(c); err != nil {
			return nil, err
		}
	}
	return func(attached bool) error {
		if attached || c.node == "" {
			return nil
		}
		return d.remove(c.attachment)
	}, nil
}

func (d directory) add(c call) error {
	if c.exclusive {
		nodes, err := d.otherNodes(c.attachment)
		if err != nil {
			return err
		}
		if len(nodes) > 0 {
			return elsewhereError{c.attachment, nodes}
		}
	}
	path := d.path(c.attachment)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err == nil {
		err = atomicfile.SyncFolder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("record attachment of %v: %w", c.attachment, err)
	}
	return nil
}

func (d directory) remove(a attachment) error {
	if err := os.Remove(d.path(a)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of %v: %w", a, err)
	}
	return nil
}

// otherNodes returns the other nodes to which the volume might be attached.
func (d directory) otherNodes(a attachment) (nodes []string, err error) {
	dir := filepath.Join(string(d), flexvolume.EscapeName(a.driver))
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read attachment records: %w", err)
	}
	for _, entry := range entries {
		other := attachment{driver: a.driver, node: entry.Name(), volume: a.volume}
		if other != a && d.has(other) {
			nodes = append(nodes, other.node)
		}
	}
	return nodes, nil
}

func (d directory) has(a attachment) bool {
	_, err := os.Stat(d.path(a))
	return err == nil
}

// list returns all recorded attachments.
func (d directory) list() (list []attachment) {
	// Ignore the error, because Glob fails only if the pattern is invalid.
	paths, _ := filepath.Glob(filepath.Join(string(d), "*", "*", "*"))
	for _, path := range paths {
		node := filepath.Dir(path)
		list = append(list, attachment{
			driver: flexvolume.UnescapeName(filepath.Base(filepath.Dir(node))), node: filepath.Base(node), volume: filepath.Base(path),
		})
	}
	return list
}

func (d directory) path(a attachment) string {
	return filepath.Join(string(d), flexvolume.EscapeName(a.driver), a.node, a.volume)
}

// unrecorded implements records without storing any attachments.
type unrecorded struct{}

func (unrecorded) begin(call) (end func(attached bool) error, err error) {
	return func(bool) error { return nil }, nil
}

func (unrecorded) remove(attachment) error { return nil }
