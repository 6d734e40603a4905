// Command flexvolume-go is the FlexVolume driver example.com/directory. Its volumes are directories
// on the machine that outlive the pods. Use it in a single-machine cluster, or with a base
// directory that all machines share.
//
// The volume options are both optional:
//
//	base  absolute path of the directory that contains the volumes; /var/lib/slipway-directory
//	name  directory of the volume in base; the name of the PersistentVolume or of the pod's volume
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-platform/slipway/storage/flexvolume/driver"
)

func main() {
	driver.Main(driver.Driver{Mount: mount, Unmount: driver.Unmount})
}

func mount(dir string, o driver.Options) error {
	base := o.Value("base", "/var/lib/slipway-directory")
	name := o.Value("name", o.Volume)
	if !filepath.IsAbs(base) {
		return fmt.Errorf("option base is %q; it must be an absolute path", base)
	}
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsRune(name, '/') {
		return fmt.Errorf("option name is %q; it must be the name of a directory that is not hidden", name)
	}
	source := filepath.Join(base, name)
	if err := os.MkdirAll(source, 0o755); err != nil {
		return fmt.Errorf("create volume: %w", err)
	}
	return driver.Bind(source, dir, o.ReadOnly)
}
