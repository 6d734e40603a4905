package diskspace

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReserveIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		t.Fatal(err)
	}
	size := int64(disk.Blocks) * disk.Bsize
	for name, tt := range map[string]struct {
		reserve Reserve
		want    string
	}{
		"none":      {Reserve{}, ""},
		"all bytes": {Reserve{Bytes: size}, "its reserve of"},
		"the disk":  {Reserve{Share: 1}, "its reserve of"},
		"inodes":    {Reserve{Inodes: 1}, "free inodes"},
	} {
		err := tt.reserve.Check(dir)
		full := (*Full)(nil)
		if tt.want == "" && err == nil {
			continue
		}
		if !errors.As(err, &full) || !strings.Contains(full.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if err := (Reserve{}).Check(filepath.Join(dir, "missing")); err == nil || errors.As(err, new(*Full)) {
		t.Errorf("a missing directory: %v", err)
	}
}
