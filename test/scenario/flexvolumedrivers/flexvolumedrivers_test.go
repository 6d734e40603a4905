//go:build flexvolumedrivers

// Package flexvolumedrivers proves on a real cluster what FlexVolume drivers get from it when everything around them goes wrong:
// processes killed in the middle of each operation, drivers that hang, change or disappear; and that nothing is left afterwards.
package flexvolumedrivers

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// script is the driver: a volume is a file with a loop device. It notes its calls, and waits where the test wants it to.
//
//go:embed testdata/driver
var script string

// driver is one installed driver with the disks that it keeps.
type driver struct {
	t    testing.TB
	c    *kit.Cluster
	name string // vendor/driver
	// dir has a file <disk>.img for each volume, attached.<disk> while it is attached, and calls.
	dir string
}

// install installs the driver under a name and, when the test ends, checks that nothing of it is left. replace are changes of its script.
func install(t testing.TB, c *kit.Cluster, name string, replace ...string) *driver {
	t.Helper()
	d := &driver{t: t, c: c, name: name, dir: t.TempDir()}
	d.update(replace...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("calls of %s:\n%s", name, d.calls())
			_, _ = c.TryOC("delete", "pods", "--all", "--wait=false") // so that the clean-up can succeed
		}
		d.unblockAll()
		d.waitReleased()
		if err := os.RemoveAll(d.folder()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// folder is where the driver is installed.
func (d *driver) folder() string {
	return filepath.Join(d.c.VolumePluginDir, strings.ReplaceAll(d.name, "/", "~"))
}

// update puts a version of the driver in place as the discovery document asks for: under a name with a dot, then renamed.
func (d *driver) update(replace ...string) {
	d.t.Helper()
	_, program, _ := strings.Cut(d.name, "/")
	hidden := filepath.Join(d.folder(), "."+program)
	text := strings.NewReplacer(append(slices.Clone(replace), "@DIR@", d.dir)...).Replace(script)
	err := errors.Join(os.MkdirAll(d.folder(), 0o755), os.WriteFile(hidden, []byte(text), 0o755),
		os.Rename(hidden, filepath.Join(d.folder(), program)))
	if err != nil {
		d.t.Fatal(err)
	}
}

// calls are the driver's so far, one a line.
func (d *driver) calls() string {
	d.t.Helper()
	content, err := os.ReadFile(filepath.Join(d.dir, "calls"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
	return string(content)
}

// count is how often an operation was called.
func (d *driver) count(op string) int {
	return strings.Count("\n"+d.calls(), "\n"+op+" ")
}

// block makes the operation wait before ("begin") or after ("end") its work.
func (d *driver) block(op, where string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, "block."+op+"."+where), nil, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// waitBlocked waits until the operation waits.
func (d *driver) waitBlocked(op, where string) {
	d.t.Helper()
	d.c.WaitFor(fmt.Sprintf("%s of %s", op, d.name), func(context.Context) error {
		if !d.blocked(op, where) {
			return errors.New("it has not been called")
		}
		return nil
	})
}

// blocked says whether the operation waits.
func (d *driver) blocked(op, where string) bool {
	_, err := os.Stat(filepath.Join(d.dir, "waits."+op+"."+where))
	return err == nil
}

// unblock lets the operation go on.
func (d *driver) unblock(op, where string) {
	d.t.Helper()
	for _, file := range []string{"block.", "waits."} {
		if err := os.Remove(filepath.Join(d.dir, file+op+"."+where)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.t.Fatal(err)
		}
	}
}

func (d *driver) unblockAll() {
	blocks, _ := filepath.Glob(filepath.Join(d.dir, "block.*")) // the pattern is a good one
	for _, block := range blocks {
		if err := os.Remove(block); err != nil {
			d.t.Error(err)
		}
	}
}

// waitReleased waits until no mount, loop device, process or attachment of the driver is left.
func (d *driver) waitReleased() {
	d.t.Helper()
	d.c.WaitFor("release of the volumes of "+d.name, func(context.Context) error { return d.held() })
}

// held says what the driver holds.
func (d *driver) held() error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if !strings.Contains(line, d.c.DataDir+"/") {
			continue // of another cluster
		}
		if strings.Contains(line, strings.ReplaceAll(d.name, "/", "~")) || strings.Contains(line, "/flexvolume/"+d.name+"/") {
			return fmt.Errorf("mounted: %s", line)
		}
	}
	loops, err := exec.Command("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").Output()
	if err != nil {
		return err
	}
	if strings.Contains(string(loops), d.dir+"/") {
		return fmt.Errorf("loop devices:\n%s", loops)
	}
	attached, _ := filepath.Glob(filepath.Join(d.dir, "attached.*")) // the pattern is a good one
	if len(attached) > 0 {
		return fmt.Errorf("attached: %q", attached)
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		line, _ := os.ReadFile(path) // it may have ended
		if strings.Contains(string(line), d.folder()+"/") || strings.Contains(string(line), d.dir+"/") {
			return fmt.Errorf("process: %q", line)
		}
	}
	return nil
}

// class is a StorageClass for volumes made by hand whose claims may grow.
const class = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: by-hand}
provisioner: kubernetes.io/no-provisioner
allowVolumeExpansion: true
`

// volume is a PersistentVolume of the driver, its claim, and a pod that uses it, all of one name.
func (d *driver) volume(name string) string {
	return d.claim(name) + d.pod(name)
}

// large is volume with a file system that can grow while it is mounted, also where the machine lacks CAP_SYS_RESOURCE, which ext4 needs.
func (d *driver) large(name string) string {
	return strings.NewReplacer("32Mi", "320Mi", "fsType: ext4", "fsType: xfs").Replace(d.volume(name))
}

func (d *driver) claim(name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s-%[2]s}
spec:
  capacity: {storage: 32Mi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: by-hand
  claimRef: {namespace: %[2]s, name: %[1]s}
  flexVolume: {driver: %[3]s, fsType: ext4, options: {disk: %[1]s}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: by-hand
  volumeName: %[1]s-%[2]s
  resources: {requests: {storage: 32Mi}}
---
`, name, d.c.Namespace, d.name)
}

func (d *driver) pod(name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: user
    image: %[2]s
    command: [sh, -c, "date >>/data/starts && sync && exec sleep infinity"]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: %[1]s}}]
---
`, name, kit.ToolsImage)
}

// remove deletes the objects of volume; the volumes' data stays.
func (d *driver) remove(names ...string) {
	d.t.Helper()
	for _, name := range names {
		d.c.OC("delete", "pod", name, "--ignore-not-found")
	}
	d.waitReleased()
	for _, name := range names {
		d.c.OC("delete", "persistentvolumeclaim", name)
		d.c.OC("delete", "persistentvolume", name+"-"+d.c.Namespace)
	}
}
