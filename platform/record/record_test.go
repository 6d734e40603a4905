package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecordsAreReadAsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	membership := Membership{Masters: []string{"192.0.2.1:8443", "192.0.2.2:8443"}, Registry: "192.0.2.1:5000", Router: true}
	if err := membership.Write(path); err != nil {
		t.Fatal(err)
	}
	joined, err := ReadMembership(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&membership, joined); diff != "" {
		t.Errorf("membership (-want +got):\n%s", diff)
	}
	cluster := Cluster{Etcd: "a=https://192.0.2.1:2380", Registry: "192.0.2.1:5000", Complete: true, Reset: true}
	if err := cluster.Write(path); err != nil {
		t.Fatal(err)
	}
	master, err := ReadCluster(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&cluster, master); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record has mode %v, error %v", info.Mode(), err)
	}
}

func TestMissingRecordsAreEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.json")
	if m, err := ReadMembership(path); m != nil || err != nil {
		t.Errorf("membership: got %v, error %v", m, err)
	}
	if c, err := ReadCluster(path); c != nil || err != nil {
		t.Errorf("cluster: got %v, error %v", c, err)
	}
	if parts, err := ReadStopped(path); parts != nil || err != nil {
		t.Errorf("stopped components: got %v, error %v", parts, err)
	}
}

func TestDamagedRecordNamesRemedy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, remedy string
		read         func() error
	}{
		{"membership", "join again", func() error { _, err := ReadMembership(path); return err }},
		{"cluster", "restore the file", func() error { _, err := ReadCluster(path); return err }},
		{"stopped parts", "remove the file", func() error { _, err := ReadStopped(path); return err }},
		{"change of stopped components", "remove the file", func() error { return SetStopped(path, "etcd", true) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.read()
			if err == nil || !strings.Contains(err.Error(), tt.remedy) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want an error with %q and the path", err, tt.remedy)
			}
		})
	}
}

func TestStoppedComponentsAreRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stopped.json")
	for _, tt := range []struct {
		name, part string
		stopped    bool
		want       []string
	}{
		{"start of a running component", "etcd", false, nil},
		{"stop", "etcd", true, []string{"etcd"}},
		{"repeated stop", "etcd", true, []string{"etcd"}},
		{"stop of another component", "controllers", true, []string{"etcd", "controllers"}},
		{"start", "etcd", false, []string{"controllers"}},
		{"start of the last component", "controllers", false, nil},
	} {
		if err := SetStopped(path, tt.part, tt.stopped); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		got, err := ReadStopped(path)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file still exists without stopped components: %v", err)
	}
}
