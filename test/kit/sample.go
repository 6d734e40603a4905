package kit

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BuildSample builds the image of a sample and publishes it in the project openshift, as an
// administrator does. base is the image that it extends, or "". Because the download of packages
// takes a long time, they are kept next to the programs under test.
func (c *Cluster) BuildSample(name, base string) {
	c.t.Helper()
	archives := c.RepositoryFile("bin", "samples")
	if err := c.downloadSample(cmp.Or(base, name), archives); err != nil {
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

// downloadSample downloads the packages of an image, unless they already exist. The download needs
// the network of this machine, but no cluster.
func (c *Cluster) downloadSample(name, archives string) error {
	if _, err := os.Stat(filepath.Join(archives, name+".tar")); err == nil {
		return nil
	}
	var err error
	for range 3 { // A mirror of packages can fail.
		var output []byte
		output, err = exec.CommandContext(c.t.Context(), c.program("slipway"), "samples", "download", name, "--to", archives).CombinedOutput()
		if err == nil {
			return nil
		}
		err = fmt.Errorf("download packages of %q: %w\n%s", name, err, output)
	}
	return err
}
