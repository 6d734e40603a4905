package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/platform/record"
)

// documentedPaths returns the counterpart of each documented path on the host with the given data
// directory.
func documentedPaths(t *testing.T, dataDir string) map[string]string {
	t.Helper()
	h, err := host.Load(dataDir, "")
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{}
	for _, path := range openShiftPaths(h) {
		if _, repeated := paths[path.documented]; repeated || path.content == "" {
			t.Errorf("%s is listed twice, or without an explanation", path.documented)
		}
		paths[path.documented] = path.path
	}
	return paths
}

func TestPathsOfOpenShiftHaveCounterparts(t *testing.T) {
	dir := t.TempDir()
	paths := documentedPaths(t, dir)
	for documented, want := range map[string]string{
		"/etc/origin/master/master-config.yaml": filepath.Join(dir, "master", "master-config.yaml"),
		"/etc/origin/node/node-config.yaml":     filepath.Join(dir, "node", "node-config.yaml"),
		"/etc/origin/master/ca.crt":             filepath.Join(dir, "pki", "ca.crt"),
		"/var/lib/etcd":                         filepath.Join(dir, "etcd"),
		"/etc/etcd/ca/openssl.cnf":              "",
	} {
		if got, listed := paths[documented]; !listed || got != want {
			t.Errorf("%s: got %q, want %q", documented, got, want)
		}
	}
}

func TestNodeHasNoPathOfMasters(t *testing.T) {
	dir := t.TempDir()
	writeMembership(t, dir)
	paths := documentedPaths(t, dir)
	for documented := range paths {
		if strings.HasPrefix(documented, "/etc/origin/master/") || strings.Contains(documented, "etcd") {
			t.Errorf("a node has %s", documented)
		}
	}
	if paths["/etc/origin/node/node-config.yaml"] == "" {
		t.Error("a node has no configuration")
	}
}

// writeMembership records that the host with the given data directory is a node of another cluster.
func writeMembership(t *testing.T, dataDir string) {
	t.Helper()
	file := filepath.Join(dataDir, "node", "membership.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (record.Membership{Masters: []string{"192.0.2.1:8443"}}).Write(file); err != nil {
		t.Fatal(err)
	}
}
