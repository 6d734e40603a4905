package kit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// DiskDriver is the name of the FlexVolume driver that attaches a Disk.
const DiskDriver = "test/disk"

// Disk is a disk that can be attached to one node at a time. Its state is in a directory that all
// hosts share, which acts as the storage system.
type Disk struct{ state string }

// diskScript is the FlexVolume driver. Its format argument is the directory that contains the
// disk's state.
const diskScript = `#!/bin/sh
state=%s
success() { echo "{\"status\":\"Success\"$1}"; exit 0; }
exec 9>"$state/lock"
flock -w 5 9 || { echo '{"status":"Failure","message":"the storage is busy"}'; exit 1; }
holder=$(cat "$state/holder" 2>/dev/null)
case $1 in
init) success ',"capabilities":{"attach":true}' ;;
getvolumename) success ',"volumeName":"disk"' ;;
attach)
	[ -z "$holder" ] || [ "$holder" = "$3" ] || echo "attached to $3 while attached to $holder" >>"$state/violations"
	echo "$3" >"$state/holder"
	echo "$3" >>"$state/attached"
	success ',"device":"disk"' ;;
waitforattach) success ',"device":"disk"' ;;
isattached) [ "$holder" = "$3" ] && success ',"attached":true' || success ',"attached":false' ;;
detach)
	[ "$holder" != "$3" ] || : >"$state/holder"
	success ;;
mountdevice)
	mkdir -p "$2"
	mountpoint -q "$2" || mount -t tmpfs disk "$2" || exit 1
	success ;;
unmountdevice)
	! mountpoint -q "$2" || umount "$2" || exit 1
	success ;;
esac
echo '{"status":"Not supported"}'
exit 1
`

// NewDisk creates a disk that exists until the test ends, and installs the disk's driver on hosts.
func NewDisk(t testing.TB, hosts ...*Cluster) *Disk {
	t.Helper()
	state, err := os.MkdirTemp("", "slipway-storage-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(state); err != nil {
			t.Error(err)
		}
	})
	for _, host := range hosts {
		dir := filepath.Join(host.VolumePluginDir, strings.ReplaceAll(DiskDriver, "/", "~"))
		err := os.MkdirAll(dir, 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "disk"), fmt.Appendf(nil, diskScript, state), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return &Disk{state}
}

// Holder returns the node to which the disk is attached, or "".
func (d *Disk) Holder(t testing.TB) string { return strings.TrimSpace(d.read(t, "holder")) }

// Check fails the test if the disk was attached to two nodes at the same time.
func (d *Disk) Check(t testing.TB) {
	t.Helper()
	if violations := d.read(t, "violations"); violations != "" {
		t.Errorf("the disk was attached twice:\n%s", violations)
	}
	t.Logf("the disk was attached %d times", strings.Count(d.read(t, "attached"), "\n"))
}

// read returns the contents of a file in the state directory, or "" if the file does not exist.
func (d *Disk) read(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(d.state, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}
