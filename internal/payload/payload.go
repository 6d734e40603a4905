// Package payload contains the small native programs that slipway starts, compressed inside the
// slipway binary, and unpacks them for use.
//
// A node starts some of the programs often, or runs one process for each pod: containerd, its shim,
// runc, the CNI plugin and pause. The slipway binary is too large for these purposes. It is also
// too large for the supervisor, which runs as long as the host. The other programs are only parts
// of images. For example, each deployment starts the deployer. The builder is a separate program to
// keep BuildKit out of all other processes. hack/payload builds the programs into files/. In a
// slipway binary that was compiled without this step, Unpack returns an error with the remedy.
package payload

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/slipway-platform/slipway/internal/payload/manifest"
)

// Files whose names begin with a dot are not embedded: temporary files of hack/payload, and
// .gitignore.
//
//go:embed files
var embedded embed.FS

// Programs contains the absolute paths of the unpacked programs.
type Programs struct {
	// Dir is the directory that contains all programs. Its name depends on their contents.
	Dir string
	// Containerd is the container runtime. Shim is a pod's parent process. Runc starts and stops
	// containers.
	Containerd, Shim, Runc string
	// CNI is the plugin that connects a pod to its network.
	CNI string
	// Pause runs in each pod sandbox and keeps its namespaces alive.
	Pause string
}

// ErrNotEmbedded means that the slipway binary was built without its programs.
var ErrNotEmbedded = errors.New("this slipway was built without its programs; run make build")

// Unpack writes the programs that run containers to a subdirectory of dir that is named after their
// contents, and creates dir if necessary. If the subdirectory is already complete and unchanged,
// Unpack takes no noticeable time. Unpack removes subdirectories of other versions unless a process
// is still running a program in them.
//
// A subdirectory appears complete or not at all, even if the process is killed or the power fails.
// Several processes can unpack to the same dir at the same time. If the programs are not embedded,
// Unpack returns ErrNotEmbedded. File system errors contain the file's path. If the disk is full,
// the error contains the required and the available space.
func Unpack(dir string) (Programs, error) {
	target, err := unpackEmbedded(dir, manifest.OfContainerd()...)
	if err != nil {
		return Programs{}, err
	}
	return programs(target), nil
}

// UnpackSupervisor is like Unpack, but unpacks only the supervisor, which starts before the other
// programs are needed. It returns the program's path. dir must differ from the directory that is
// passed to Unpack.
func UnpackSupervisor(dir string) (string, error) {
	target, err := unpackEmbedded(dir, manifest.Supervisor)
	if err != nil {
		return "", err
	}
	return filepath.Join(target, manifest.Supervisor), nil
}

func unpackEmbedded(dir string, names ...string) (string, error) {
	files, err := fs.Sub(embedded, "files")
	if err != nil {
		return "", fmt.Errorf("read embedded programs: %w", err)
	}
	return unpack(files, dir, names...)
}

// programs returns the paths of the programs in dir.
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
