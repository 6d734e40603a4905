// Package flexvolume tests the example driver with real loop devices. The tests call the driver as
// nodes and controllers do, and check that the manifest contains a copy of the driver.
package flexvolume

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/storage/flexvolume/conformance"
)

var update = flag.Bool("update", false, "copy the driver into the manifest")

const manifest = "01-driver.yaml"

func TestManifestContainsDriver(t *testing.T) {
	driver, err := os.ReadFile("driver/loop")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	const key = "\n  loop: |\n"
	if *update {
		head, _, ok := bytes.Cut(content, []byte(key))
		if !ok {
			t.Fatalf("%s has no %q", manifest, key)
		}
		content = append(head, key...)
		for line := range strings.Lines(string(driver)) {
			if line != "\n" {
				line = "    " + line
			}
			content = append(content, line...)
		}
		if err := os.WriteFile(manifest, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	documents := bytes.Split(content, []byte("\n---\n"))
	var configMap struct {
		Kind string            `json:"kind"`
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(documents[len(documents)-1], &configMap); err != nil {
		t.Fatal(err)
	}
	if configMap.Kind != "ConfigMap" || configMap.Data["loop"] != string(driver) {
		t.Error("the ConfigMap has another driver; run go test ./examples/flexvolume -update")
	}
}

// loop installs the driver with a temporary state directory.
func loop(t *testing.T) (driver *flexvolume.Driver, state string) {
	t.Helper()
	source, err := os.ReadFile("driver/loop")
	if err != nil {
		t.Fatal(err)
	}
	state = filepath.Join(t.TempDir(), "state")
	content := strings.Replace(string(source), "\nstate=/var/lib/slipway-loop\n", "\nstate="+state+"\n", 1)
	if content == string(source) {
		t.Fatal("the driver has another state directory")
	}
	path := filepath.Join(t.TempDir(), "example.com~loop", "loop")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	driver = flexvolume.NewDriver("example.com/loop", path, flexvolume.Settings{})
	caps, err := driver.Init(context.Background())
	if err != nil || !caps.Attach {
		t.Fatalf("init: %+v, %v", caps, err)
	}
	t.Cleanup(func() {
		if rest := devices(t, filepath.Dir(state)); rest != "" {
			t.Errorf("loop devices remain: %s", rest)
		}
	})
	return driver, state
}

// devices returns the loop devices whose backing files are below a directory.
func devices(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("losetup", "--noheadings", "--list", "--output", "NAME,BACK-FILE").Output()
	if err != nil {
		t.Fatal(err)
	}
	var leaks []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, dir) {
			leaks = append(leaks, strings.TrimSpace(line))
		}
	}
	return strings.Join(leaks, "\n")
}

func TestDataSurvivesPod(t *testing.T) {
	driver, state := loop(t)
	ctx := context.Background()
	for _, volume := range []flexvolume.Volume{
		{Name: "pv1", FSType: "ext4", Options: map[string]string{"size": "20Mi"}},
		{Name: "pv2", Options: map[string]string{
			"directory": filepath.Join(state, `it's <a> "place" & more,"name":"x`), "name": "disk-2", "size": "20M",
		}},
	} {
		t.Run(volume.Name, func(t *testing.T) {
			root := t.TempDir()
			for _, pod := range []string{"first", "second"} {
				name, _, err := driver.VolumeName(ctx, volume)
				if err != nil {
					t.Fatal(err)
				}
				staged, published := filepath.Join(root, "mounts", name), filepath.Join(root, pod, volume.Name)
				var device string
				for range 2 { // Every operation can be repeated.
					if _, err := driver.Attach(ctx, volume, "node"); err != nil {
						t.Fatal(err)
					}
					if is, err := driver.IsAttached(ctx, volume, "node"); err != nil || !is {
						t.Fatalf("attached %t, %v", is, err)
					}
					if device, err = driver.WaitForAttach(ctx, "", volume); err != nil {
						t.Fatal(err)
					}
					if !strings.HasPrefix(device, "/dev/loop") {
						t.Fatalf("device %q", device)
					}
					if err := os.MkdirAll(staged, 0o750); err != nil {
						t.Fatal(err)
					}
					if err := driver.MountDevice(ctx, staged, device, volume); err != nil {
						t.Fatal(err)
					}
				}
				if err := driver.Publish(ctx, flexvolume.MountRequest{Volume: volume}, published, staged, "", nil); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(published, "file")
				if pod == "first" {
					if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
						t.Fatal(err)
					}
				} else if got, err := os.ReadFile(file); err != nil || string(got) != "kept" {
					t.Errorf("file %q, %v", got, err)
				}
				if err := driver.Unpublish(ctx, published, ""); err != nil {
					t.Fatal(err)
				}
				if err := driver.UnmountDevice(ctx, staged); err != nil {
					t.Fatal(err)
				}
				if err := driver.UnmountDevice(ctx, staged); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if err := driver.Detach(ctx, name, "node"); err != nil {
						t.Fatal(err)
					}
				}
				if is, err := driver.IsAttached(ctx, volume, "node"); err != nil || is {
					t.Errorf("attached %t after detach, %v", is, err)
				}
			}
		})
	}
}

func TestAttachedVolumeIsRejectedOnAnotherNode(t *testing.T) {
	driver, _ := loop(t)
	ctx, volume := context.Background(), flexvolume.Volume{Name: "pv1"}
	if _, err := driver.WaitForAttach(ctx, "", volume); err == nil || !strings.Contains(err.Error(), "not attached") {
		t.Errorf("before: %v", err)
	}
	if _, err := driver.Attach(ctx, volume, "node1"); err != nil {
		t.Fatal(err)
	}
	if _, err := driver.Attach(ctx, volume, "node2"); err == nil || !strings.Contains(err.Error(), "attached to node node1") {
		t.Errorf("second node: %v", err)
	}
	if err := driver.Detach(ctx, "pv1", "node2"); err != nil {
		t.Error(err)
	}
	if is, err := driver.IsAttached(ctx, volume, "node1"); err != nil || !is {
		t.Errorf("another node's detach removed the attachment: %t, %v", is, err)
	}
}

func TestDetachFreesUnmountedDevice(t *testing.T) {
	driver, state := loop(t)
	ctx, volume := context.Background(), flexvolume.Volume{Name: "pv1"}
	if _, err := driver.Attach(ctx, volume, "node"); err != nil {
		t.Fatal(err)
	}
	if _, err := driver.WaitForAttach(ctx, "", volume); err != nil {
		t.Fatal(err)
	}
	if devices(t, state) == "" {
		t.Fatal("there is no device")
	}
	if err := driver.Detach(ctx, "pv1", "node"); err != nil {
		t.Fatal(err)
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	driver, _ := loop(t)
	for option, values := range map[string][]string{
		"name":      {"../x", "a b", ".hidden", "a/b", "$(reboot)"},
		"directory": {"relative", "/a/../b", `/a\b`},
		"size":      {"big", "-1", "1Xi", "1Gi2"},
	} {
		for _, value := range values {
			_, err := driver.Attach(context.Background(), flexvolume.Volume{Name: "pv1", Options: map[string]string{option: value}}, "node")
			if flexvolume.KindOf(err) != flexvolume.KindFailure || !strings.Contains(err.Error(), "option "+option+" is") {
				t.Errorf("%s %q: %v", option, value, err)
			}
		}
	}
}

func TestDriverPassesCheck(t *testing.T) {
	report, err := conformance.Run(context.Background(), conformance.Config{
		Driver: "example.com/loop", File: "driver/loop", Size: 20 << 20, Options: map[string]string{"directory": "{dir}", "size": "{size}"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Count(conformance.Wrong)+report.Count(conformance.Risk) > 0 || report.Count(conformance.OK) < 40 {
		var table strings.Builder
		_ = report.Print(&table)
		t.Error(table.String())
	}
}
