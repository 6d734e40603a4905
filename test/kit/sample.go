package kit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/slipway-platform/slipway/bootstrap/samples"
)

// BuildSample builds the image of a sample and publishes it in the project openshift, as an
// administrator does. Because the download of its packages takes long, the packages are kept next
// to the programs under test.
func (c *Cluster) BuildSample(name string) {
	c.t.Helper()
	archives := c.RepositoryFile("bin", "samples")
	images, err := samples.Select([]string{name})
	for _, image := range images {
		if err == nil && image.Base == "" {
			err = c.downloadSample(image.Name, archives)
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
	// A new project gets its service accounts a moment after its creation.
	c.WaitFor("image of "+name, func(context.Context) error {
		if result := c.Slipway("samples", "build", name, "--from", archives); result.Code != 0 {
			return fmt.Errorf("slipway samples build: %s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
}

// downloadSample downloads the packages of an image, unless they are there. The download needs the
// network of this machine, and no cluster.
func (c *Cluster) downloadSample(name, archives string) error {
	if _, err := os.Stat(filepath.Join(archives, name+".tar")); err == nil {
		return nil
	}
	var err error
	for range 3 { // A mirror can fail.
		var output []byte
		output, err = exec.CommandContext(c.t.Context(), c.program("slipway"), "samples", "download", name, "--to", archives).CombinedOutput()
		if err == nil {
			return nil
		}
		err = fmt.Errorf("download packages of %q: %w\n%s", name, err, output)
	}
	return err
}
