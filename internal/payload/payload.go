// Package payload holds the small native programs that slipway starts, compressed inside the slipway binary, and
// unpacks them for use.
//
// They are programs of their own because a pod or a node starts them often, or keeps one of them per pod, and the slipway binary
// is too large for that: containerd, its shim, runc, the CNI plug-in and pause. Two more are only
// part of images: the deployer, which each deployment starts, and the builder, so that BuildKit is in no other process. hack/payload builds them into
// files/; a slipway that was compiled without that step works except that Unpack returns an error with the remedy.
package payload

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/slipway-platform/slipway/internal/payload/manifest"
)

// Files whose names begin with a dot are not embedded: hack/payload's temporary ones, and .gitignore.
//
//go:embed files
var embedded embed.FS

// Programs has the absolute paths of the unpacked programs.
type Programs struct {
	// Dir is the directory that holds them all. Its name changes with their content.
	Dir string
	// Containerd is the container runtime, Shim its per-pod parent process, Runc what starts and stops a container.
	Containerd, Shim, Runc string
	// CNI is the plug-in that gives a pod its network.
	CNI string
	// Pause is the process of a pod sandbox.
	Pause string
}

// ErrNone says that the slipway binary was built without its programs.
var ErrNone = errors.New("this slipway was built without its programs; run make build")

// Unpack makes the programs available below dir, which is created where it is missing, in a subdirectory named for their
// content. Programs that are there already, complete and unchanged, are kept, which takes no noticeable time;
// versions in other subdirectories are removed unless a process still runs from them.
//
// A subdirectory appears complete or not at all, also when the process is killed or the machine loses power meanwhile,
// and several processes may unpack to one dir at the same time. Errors: ErrNone; the file system's, naming the file; for a full
// disk also the space that is needed and what there is.
func Unpack(dir string) (Programs, error) {
	files, err := fs.Sub(embedded, "files")
	if err != nil {
		return Programs{}, fmt.Errorf("read embedded programs: %w", err)
	}
	return unpack(files, dir)
}

// programs returns the paths of the programs that are unpacked in dir.
func programs(dir string) Programs {
	return Programs{
		Dir:        dir,
		Containerd: filepath.Join(dir, manifest.Containerd),
		Shim:       filepath.Join(dir, manifest.Shim),
		Runc:       filepath.Join(dir, manifest.Runc),
		CNI:        filepath.Join(dir, manifest.CNI),
		Pause:      filepath.Join(dir, manifest.Pause),
	}
}
