// Package failure tests that a failed start reports the cause, the location of the problem, and the
// remedy.
package failure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestBusyPortsAreReportedTogether(t *testing.T) {
	c := kit.New(t, kit.Options{})
	listen(t, c, "0.0.0.0:8443")
	listen(t, c, "0.0.0.0:10250")
	output := c.UpFails()
	expect(t, output, "port 8443", "port 10250", "servingInfo.bindAddress", "master-config.yaml", "node-config.yaml")
}

func TestProblemsOfMachineAreReportedTogether(t *testing.T) {
	c := kit.New(t, kit.Options{})
	listen(t, c, "0.0.0.0:8443")
	result := c.SlipwayWith([]string{"PATH=" + t.TempDir()}, "up")
	if result.Code != 1 {
		t.Errorf("exit code %d", result.Code)
	}
	expect(t, result.Stderr, "program nft", "program mount", "program losetup", "apt-get install -y", "port 8443")
}

func listen(t *testing.T, c *kit.Cluster, address string) {
	t.Helper()
	listener, err := c.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
}

func TestDamagedConfigurationIsReportedWithFileLineAndKey(t *testing.T) {
	c := kit.New(t, kit.Options{})
	write(t, c.MasterFile(), `apiVersion: v1
kind: MasterConfig
servingInfo:
  bindAdress: 0.0.0.0:8443
networkConfig:
  serviceNetworkCIDR: 172.30.0.0/99
`)
	write(t, c.NodeFile(), `apiVersion: v1
kind: NodeConfig
nodeName: [not, a, name]
`)
	output := c.UpFails()
	expect(t, output,
		c.MasterFile()+":4: servingInfo.bindAdress",
		c.MasterFile()+":6: networkConfig.serviceNetworkCIDR",
		c.NodeFile()+":3: nodeName",
	)
	// Restore the configuration files, so that `slipway down` succeeds.
	write(t, c.MasterFile(), "apiVersion: v1\nkind: MasterConfig\n")
	write(t, c.NodeFile(), "apiVersion: v1\nkind: NodeConfig\n")
}

func TestDamagedCertificateIsReported(t *testing.T) {
	c := kit.Start(t, kit.Options{})
	c.MustSlipway("down")
	write(t, c.Path("pki", "ca.crt"), "not a certificate\n")
	expect(t, c.UpFails(), c.Path("pki", "ca.crt"))
}

func TestDamagedDatabaseIsReported(t *testing.T) {
	c := kit.Start(t, kit.Options{})
	c.MustSlipway("down")
	database := c.Path("etcd", "member", "snap", "db")
	write(t, database, strings.Repeat("not a database\n", 1000))
	expect(t, c.UpFails(), "etcd", c.Path("etcd"))
}

func TestDataOfAnotherVersionIsRejected(t *testing.T) {
	c := kit.New(t, kit.Options{})
	write(t, c.Path("master", "kubernetes-version"), "v1.99.0\n")
	expect(t, c.UpFails(), "the data was written by Kubernetes 1.99.0", "restore a snapshot or a backup")
}

func TestFullDiskIsReported(t *testing.T) {
	c := kit.New(t, kit.Options{DataDir: smallDisk(t, "size=8m")})
	fill(t, c.Path("filler"))
	output := c.UpFails()
	expect(t, output, c.DataDir, "full")
	if err := os.Remove(c.Path("filler")); err != nil {
		t.Fatal(err)
	}
}

func TestSmallDiskIsReported(t *testing.T) {
	c := kit.New(t, kit.Options{DataDir: smallDisk(t, "size=64m")})
	expect(t, c.UpFails(), c.DataDir, "MB free on its disk", "--data-dir")
}

// smallDisk returns a directory on a separate file system.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "slipway-disk-")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
		_ = os.Remove(dir) // the kit might already have removed the directory
	})
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	return data
}

// fill fills the disk by writing to a file until a write fails.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	block := make([]byte, 4096)
	for {
		if _, err := file.Write(block); err != nil {
			return // the disk is full
		}
	}
}

func TestStartNamesFailedComponent(t *testing.T) {
	// The preflight checks cannot detect that no interface has this address.
	c := kit.New(t, kit.Options{Node: "nodeIP: 203.0.113.9\n"})
	expect(t, c.UpFails(), "203.0.113.9")
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, output string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(output, text) {
			t.Errorf("no %q in:\n%s", text, output)
		}
	}
}
