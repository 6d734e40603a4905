package kit

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BuildSample builds a sample's image and publishes it in the openshift project, as an
// administrator does. base is the image that the sample extends, or "". The kit keeps the
// downloaded packages next to the programs under test, because the download takes a long time.
func (c *Cluster) BuildSample(name, base string) {
	c.t.Helper()
	from := c.DownloadSamples(cmp.Or(base, name))
	// Retry, because a new project's service accounts are created shortly after the project.
	c.WaitFor("image of "+name, func(context.Context) error {
		if result := c.Slipway("samples", "build", name, "--from", from); result.Code != 0 {
			return fmt.Errorf("slipway samples build: %s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
}

// DownloadSamples downloads the packages for images that extend no other image. It returns the
// packages' directory.
func (c *Cluster) DownloadSamples(names ...string) (dir string) {
	c.t.Helper()
	dir = c.RepositoryFile("bin", "samples")
	for _, name := range names {
		if err := c.downloadSample(name, dir); err != nil {
			c.t.Fatal(err)
		}
	}
	return dir
}

// downloadSample downloads an image's packages, unless they already exist. The download uses this
// machine's network, and requires no cluster.
func (c *Cluster) downloadSample(name, archives string) error {
	if _, err := os.Stat(filepath.Join(archives, name+".tar")); err == nil {
		return nil
	}
	var err error
	for range 3 { // retry, because a package mirror can fail
		var output []byte
		output, err = exec.CommandContext(c.t.Context(), c.program("slipway"), "samples", "download", name, "--to", archives).CombinedOutput()
		if err == nil {
			return nil
		}
		err = fmt.Errorf("download packages of %q: %w\n%s", name, err, output)
	}
	return err
}
