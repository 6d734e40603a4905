// Package flexvolumecommand tests the `slipway flexvolume` commands on a running cluster. It
// installs, uses, inspects, updates and removes a driver without restarting any process.
package flexvolumecommand

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// script is a driver whose volumes are directories next to it.
const script = `#!/bin/sh
dir=$2
case $1 in
init) echo '{"status":"Success","capabilities":{"attach":false}}' ;;
mount)
	mkdir -p "$0.data"
	mountpoint -q "$dir" || mount --bind "$0.data" "$dir" || { echo '{"status":"Failure","message":"mount"}'; exit 1; }
	echo '{"status":"Success"}' ;;
unmount)
	! mountpoint -q "$dir" || umount "$dir" || { echo '{"status":"Failure","message":"unmount"}'; exit 1; }
	echo '{"status":"Success"}' ;;
*) echo '{"status":"Not supported"}'; exit 1 ;;
esac
`

const pod = `
apiVersion: v1
kind: Pod
metadata:
  name: user
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: c
      image: localhost/slipway-tools:current
      command: [sh, -c, "echo written >/data/file; trap 'exit 0' TERM; sleep 100000 & wait"]
      volumeMounts: [{name: data, mountPath: /data}]
  volumes:
    - name: data
      flexVolume: {driver: example.com/command}
`

// driverEntry is one driver in the output of `slipway flexvolume list -o json`.
type driverEntry struct {
	Driver, State, Version, Error string
	Volumes                       struct{ Pods int }
	Latency                       map[string]struct {
		Calls, Errors int
		MeanSeconds   float64
	}
}

func list(t *testing.T, c *kit.Cluster, driver string) (entry driverEntry) {
	t.Helper()
	var all []driverEntry
	if err := json.Unmarshal([]byte(c.MustSlipway("flexvolume", "list", "-o", "json")), &all); err != nil {
		t.Fatal(err)
	}
	for _, entry := range all {
		if entry.Driver == driver {
			return entry
		}
	}
	return driverEntry{}
}

func TestDriverLifecycleByCommand(t *testing.T) {
	c := kit.Shared(t)
	const driver = "example.com/command"
	file := filepath.Join(t.TempDir(), "command")
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(script)
	if output := c.MustSlipway("flexvolume", "install", file, "--driver", driver); !strings.Contains(output, "ready: ") {
		t.Errorf("install printed %q", output)
	}
	first := list(t, c, driver)
	if first.State != "ready" || len(first.Version) != 64 || first.Volumes.Pods != 0 {
		t.Errorf("listed %+v", first)
	}
	if output := c.MustSlipway("flexvolume", "check", driver, "--only", "sequence,undone"); !strings.Contains(output, " 0 wrong") {
		t.Errorf("check said %s", output)
	}

	c.Apply(pod)
	c.WaitPodRunning("user")
	entry := list(t, c, driver)
	if entry.Volumes.Pods != 1 || entry.Latency["mount"].Calls != 1 || entry.Latency["mount"].Errors != 0 || entry.Latency["mount"].MeanSeconds <= 0 {
		t.Errorf("the list while the driver is in use is %+v", entry)
	}
	if output := c.MustSlipway("flexvolume", "list"); !strings.Contains(output, driver) || !strings.Contains(output, "ms") {
		t.Errorf("list said %s", output)
	}
	for _, subject := range []string{driver, "data"} {
		if history := c.MustSlipway("flexvolume", "history", subject); !regexp.MustCompile(`example.com/command +mount +\S+ +\S+ +ok`).MatchString(history) {
			t.Errorf("the history of %s is %s", subject, history)
		}
	}
	c.WaitFor("the node to report the driver", func(context.Context) error {
		if drivers := c.MustSlipway("flexvolume", "list", "--all-nodes"); !regexp.MustCompile(c.Status().Nodes[0].Name + ` +example.com/command +ready`).MatchString(drivers) {
			return errors.New(drivers)
		}
		return nil
	})
	if result := c.Slipway("flexvolume", "remove", driver); result.Code == 0 || !strings.Contains(result.Stderr, "use 1 of its volumes") {
		t.Errorf("removal while the driver is in use: %+v", result)
	}
	write(script + "# second\n")
	c.MustSlipway("flexvolume", "install", file, "--driver", driver)
	if second := list(t, c, driver); second.Version == first.Version || second.State != "ready" {
		t.Errorf("the list after the update is %+v", second)
	}
	c.MustSlipway("flexvolume", "remove", driver, "--force")
	if removed := list(t, c, driver); removed.State != "removed" || removed.Volumes.Pods != 1 {
		t.Errorf("the list after the removal is %+v", removed)
	}
	c.OC("delete", "pod", "user")
	c.MustSlipway("flexvolume", "install", file, "--driver", driver)
	c.MustSlipway("flexvolume", "remove", driver)
}

func TestInstallAndCallReportBrokenDriver(t *testing.T) {
	c := kit.Shared(t)
	const driver = "example.com/broken"
	file := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho hello; exit 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if result := c.Slipway("flexvolume", "install", file, "--driver", driver); result.Code == 0 || !strings.Contains(result.Stderr, "it printed no JSON") {
		t.Errorf("install: %+v", result)
	}
	t.Cleanup(func() { c.MustSlipway("flexvolume", "remove", driver) })
	if result := c.Slipway("flexvolume", "install", file, "--driver", driver, "--force"); result.Code == 0 || !strings.Contains(result.Stderr, "slipway flexvolume list") {
		t.Errorf("install --force: %+v", result)
	}
	if entry := list(t, c, driver); entry.State != "failed" || !strings.Contains(entry.Error, "it printed no JSON") || !strings.Contains(entry.Error, "hello") {
		t.Errorf("listed %+v", entry)
	}
	condition := func(want string) {
		c.WaitFor("the condition of the node to be "+want, func(context.Context) error {
			got, err := c.TryOC("get", "nodes", "-o", `jsonpath={.items[0].status.conditions[?(@.type=="FlexVolumeDriversReady")]}`)
			if err == nil && !strings.Contains(got, want) {
				err = errors.New(got)
			}
			return err
		})
	}
	condition("it printed no JSON")
	c.WaitFor("an event of the node", func(context.Context) error {
		text, err := c.TryOC("describe", "node", c.Status().Nodes[0].Name)
		if err == nil && !regexp.MustCompile(`FlexVolumeDriverFailed .*it printed no JSON`).MatchString(text) {
			err = errors.New(text)
		}
		return err
	})
	result := c.Slipway("flexvolume", "call", driver, "attach", "node1", "--volume", "pv1", "--options", "size=1Gi")
	for _, want := range []string{
		`/broken attach '{"kubernetes.io/fsType":"","kubernetes.io/pvOrVolumeName":"pv1","kubernetes.io/readwrite":"rw","size":"1Gi"}' node1`,
		"exit code 3", "stdout    hello", "taken as  error: ",
	} {
		if !strings.Contains(result.Stdout, want) {
			t.Errorf("call did not print %q: %+v", want, result)
		}
	}
	if result.Code != 1 {
		t.Errorf("call ended with %d", result.Code)
	}
}
