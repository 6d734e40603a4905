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

// These are the drivers' scripts. disk supports attach, and mounts does not.
var (
	//go:embed testdata/disk
	disk string
	//go:embed testdata/mounts
	mounts string
)

// driver is an installed driver with its volumes.
type driver struct {
	t    testing.TB
	c    *kit.Cluster
	name string // in the format vendor/driver
	// dir is the directory of a driver that uses the disk script. It contains the file <volume>.img
	// for each volume, the file attached.<volume> while the volume is attached, and the calls file.
	dir string
}

// install installs the disk script under a name, with the given replacements, and waits until the
// driver is usable. When the test ends, install's cleanup checks that nothing remains of the
// driver.
func install(t testing.TB, c *kit.Cluster, name string, replace ...string) *driver {
	t.Helper()
	d := installScript(t, c, name, disk, replace...)
	d.waitReady()
	return d
}

func installScript(t testing.TB, c *kit.Cluster, name, script string, replace ...string) *driver {
	t.Helper()
	d := &driver{t: t, c: c, name: name, dir: t.TempDir()}
	d.install(script, replace...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("calls of %s:\n%s", name, d.calls())
			// Release the held operations, so that the cleanup can succeed.
			_, _ = c.TryOC("delete", "pods", "--all", "--wait=false")
		}
		d.clearFaults()
		d.waitReleased()
		d.uninstall()
	})
	return d
}

// escaped returns the driver's name in the form that is used in paths.
func (d *driver) escaped() string { return strings.ReplaceAll(d.name, "/", "~") }

// folder returns the driver's installation directory.
func (d *driver) folder() string { return filepath.Join(d.c.VolumePluginDir, d.escaped()) }

// file returns the path of the installed driver.
func (d *driver) file() string {
	return filepath.Join(d.folder(), d.name[strings.IndexByte(d.name, '/')+1:])
}

// update installs another version of the disk script.
func (d *driver) update(replace ...string) {
	d.t.Helper()
	d.install(disk, replace...)
}

// install installs a version of the driver as the discovery document requires. It writes a file
// whose name begins with a dot, and then renames the file.
func (d *driver) install(script string, replace ...string) {
	d.t.Helper()
	temporary := filepath.Join(d.folder(), ".new")
	const capabilities = `"attach":true,"supportsMetrics":true`
	text := strings.NewReplacer(append(slices.Clone(replace), "@DIR@", d.dir, "@CAPABILITIES@", capabilities)...).Replace(script)
	err := errors.Join(os.MkdirAll(d.folder(), 0o755), os.WriteFile(temporary, []byte(text), 0o755), os.Rename(temporary, d.file()))
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *driver) uninstall() {
	d.t.Helper()
	if err := os.RemoveAll(d.folder()); err != nil {
		d.t.Error(err)
	}
}

// calls returns all calls to the driver so far, one call per line.
func (d *driver) calls() string {
	d.t.Helper()
	content, err := os.ReadFile(filepath.Join(d.dir, "calls"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
	return string(content)
}

// callsOf returns the driver's calls for an operation on a volume.
func (d *driver) callsOf(op, name string) []string {
	d.t.Helper()
	var calls []string
	for line := range strings.Lines(d.calls()) {
		if strings.HasPrefix(line, op+" ") && strings.Contains(line, d.volume(name)) {
			calls = append(calls, line)
		}
	}
	return calls
}

// wasCalled fails the test unless the operation was called the given number of times for a volume.
func (d *driver) wasCalled(op, name string, times int) {
	d.t.Helper()
	if n := len(d.callsOf(op, name)); n != times {
		d.t.Errorf("%s of %s was called %d times for %s, want %d", op, d.name, n, name, times)
	}
}

// fault makes an operation on a volume run shell code before ("begin") or after ("end") its work.
// In the code, $fault is the path of the file that contains the code.
func (d *driver) fault(op, point, name, code string) {
	d.t.Helper()
	path := d.faultFile(op, point, name)
	if err := errors.Join(os.WriteFile(path+".new", []byte(code), 0o600), os.Rename(path+".new", path)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *driver) faultFile(op, point, name string) string {
	if op == "init" {
		return filepath.Join(d.dir, "fault.init."+point+".")
	}
	return filepath.Join(d.dir, "fault."+op+"."+point+"."+d.volume(name))
}

// hold makes the operation wait until release is called.
func (d *driver) hold(op, point, name string) {
	d.t.Helper()
	d.fault(op, point, name, `while [ -e "$fault" ]; do mkdir -p "$fault.held"; sleep 0.05; done`)
}

// holdOnce makes only the next call of the operation wait until release is called.
func (d *driver) holdOnce(op, point, name string) {
	d.t.Helper()
	d.fault(op, point, name, `if mkdir "$fault.held" 2>/dev/null; then while [ -e "$fault" ]; do sleep 0.05; done; fi`)
}

// waitHeld waits until a call of the operation is held.
func (d *driver) waitHeld(op, point, name string) {
	d.t.Helper()
	d.c.WaitFor(fmt.Sprintf("%s of %s for %s", op, d.name, name), func(context.Context) error { return d.waitingCall(op, point, name) })
}

func (d *driver) waitingCall(op, point, name string) error {
	_, err := os.Stat(d.faultFile(op, point, name) + ".held")
	return err
}

// release lets the operation's held calls continue.
func (d *driver) release(op, point, name string) {
	d.t.Helper()
	for _, suffix := range []string{"", ".held"} {
		if err := os.Remove(d.faultFile(op, point, name) + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.t.Fatal(err)
		}
	}
}

func (d *driver) clearFaults() {
	faults, _ := filepath.Glob(filepath.Join(d.dir, "fault.*")) // the pattern is valid
	for _, fault := range faults {
		if err := os.Remove(fault); err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.t.Error(err)
		}
	}
}

// waitReady waits until both processes that call drivers have called the driver's init and saved a
// last-good copy. Without this wait, a pod could start earlier, and would have to wait ten seconds
// for the kubelet's next check.
func (d *driver) waitReady() {
	d.t.Helper()
	d.c.WaitFor("init of "+d.name, func(context.Context) error {
		for _, process := range []string{"node", "control-plane"} {
			if _, err := os.Stat(d.c.Path("flexvolume", process, d.escaped(), ".kept.json")); err != nil {
				return err
			}
		}
		return nil
	})
}

// waitReleased waits until none of the driver's mounts, loop devices, processes or attachments
// remains.
func (d *driver) waitReleased() {
	d.t.Helper()
	d.c.WaitFor("release of the volumes of "+d.name, func(context.Context) error {
		return errors.Join(d.leftMounts(d.name, d.escaped()), d.leftLoops(), d.leftProcesses(), d.attached(""))
	})
}

// leftMounts returns an error that lists the cluster's mounts whose paths contain any of the given
// texts.
func (d *driver) leftMounts(texts ...string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(table)) {
		for _, text := range texts {
			if strings.Contains(line, d.c.DataDir+"/") && strings.Contains(line, "/"+text+"/") {
				return fmt.Errorf("mounted: %s", line)
			}
		}
	}
	return nil
}

func (d *driver) leftLoops() error {
	loops, err := exec.Command("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").Output()
	if err == nil && strings.Contains(string(loops), d.dir+"/") {
		err = fmt.Errorf("loop devices:\n%s", loops)
	}
	return err
}

// attached returns an error if the named volume is attached. If name is empty, the error lists all
// attached volumes.
func (d *driver) attached(name string) error {
	pattern := "attached.*"
	if name != "" {
		pattern = "attached." + d.volume(name)
	}
	// The error is always nil, because the pattern is valid.
	if paths, _ := filepath.Glob(filepath.Join(d.dir, pattern)); len(paths) > 0 {
		return fmt.Errorf("attached: %q", paths)
	}
	return nil
}

// leftProcesses returns an error that lists the driver's processes, including processes that run
// the cluster's last-good copy.
func (d *driver) leftProcesses() error {
	running := d.processes()
	if len(running) > 0 {
		return fmt.Errorf("processes: %q", running)
	}
	return nil
}

// processes returns the command lines of the driver's processes.
func (d *driver) processes() []string {
	var paths []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, path := range lines {
		content, _ := os.ReadFile(path) // the process might have exited
		line := string(content)
		isOwn := strings.Contains(line, d.c.DataDir+"/") || strings.Contains(line, d.c.VolumePluginDir+"/")
		if strings.Contains(line, d.dir+"/") || isOwn && strings.Contains(line, d.escaped()+"/") {
			paths = append(paths, line)
		}
	}
	return paths
}
