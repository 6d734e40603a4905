package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFlexVolumeSettingsByDriver(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "node.yaml")
	write(t, file, `
apiVersion: v1
kind: NodeConfig
slipway:
  flexVolume:
    example.com/loop:
      timeouts: {attach: 90s, mountdevice: 2h}
      concurrency: 4
      volumeName: pv
    plain: {}
`)
	c, err := Load(dir, file)
	if err != nil {
		t.Fatal(err)
	}
	loop := c.Node.Slipway.FlexVolume["example.com/loop"]
	if loop.Timeouts["attach"].Duration != 90*time.Second || loop.Timeouts["mountdevice"].Duration != 2*time.Hour ||
		loop.Concurrency != 4 || loop.VolumeName != "pv" {
		t.Errorf("got %+v", loop)
	}
	if ignored := c.Ignored(); len(ignored) > 0 {
		t.Errorf("ignored: %q", ignored)
	}
	view, err := c.View()
	if err != nil || !strings.Contains(string(view), "attach: 1m30s") {
		t.Errorf("view, error %v:\n%s", err, view)
	}
}

func TestInvalidFlexVolumeSettingsAreProblems(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "node.yaml")
	write(t, file, `
apiVersion: v1
kind: NodeConfig
slipway:
  flexVolume:
    example.com~loop: {}
    a/b/c: {}
    example.com/loop:
      timeouts: {provision: 1m, attach: 0s, mount: soon, detach: -1s}
      concurrency: -1
      volumeName: PV
      timeout: 3s
`)
	_, err := Load(dir, file)
	if err == nil {
		t.Fatal("no error")
	}
	const at = "node.yaml:"
	for _, want := range []string{
		at + "6: slipway.flexVolume.example.com~loop: is not a driver name",
		at + "7: slipway.flexVolume.a/b/c: is not a driver name",
		at + "9: slipway.flexVolume.example.com/loop.timeouts.provision: is not an operation",
		at + "9: slipway.flexVolume.example.com/loop.timeouts.attach: is 0s, must be more than 0",
		at + "9: slipway.flexVolume.example.com/loop.timeouts.mount: is \"soon\", must be a duration",
		at + "9: slipway.flexVolume.example.com/loop.timeouts.detach: is -1s, must be more than 0",
		at + "10: slipway.flexVolume.example.com/loop.concurrency: is -1, must not be negative",
		at + "11: slipway.flexVolume.example.com/loop.volumeName: is \"PV\", must be driver or pv",
		at + "12: slipway.flexVolume.example.com/loop.timeout: unknown key; did you mean timeouts?",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
	if lines := strings.Count(err.Error(), "\n") + 1; lines != 9 {
		t.Errorf("%d problems, want 9:\n%v", lines, err)
	}
}
