package fake

import (
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

// TestSanity runs the community's conformance suite on the driver without faults. If it passes,
// failures in other tests are caused by the code that calls the driver.
func TestSanity(t *testing.T) {
	d := New(Options{Topology: map[string]string{"fake.csi.slipway.io/node": "node"}, Limit: 8, Dir: t.TempDir()})
	dir := t.TempDir()
	serve(t, d, filepath.Join(dir, "csi.sock"))
	config := sanity.NewTestConfig()
	config.Address = filepath.Join(dir, "csi.sock")
	config.TargetPath = filepath.Join(dir, "target")
	config.StagingPath = filepath.Join(dir, "staging")
	config.TestNodeVolumeAttachLimit = true
	config.TestVolumeMutableParameters = map[string]string{"iops": "100"}
	sanity.Test(t, config)
	if remaining := d.Volumes(); len(remaining) > 0 {
		t.Errorf("the suite left %v behind", remaining)
	}
}

func serve(t *testing.T, d *Driver, socket string) *Server {
	t.Helper()
	server, err := d.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}
