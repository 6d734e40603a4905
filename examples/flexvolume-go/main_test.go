package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/storage/flexvolume/conformance"
)

// build builds the driver as described in its README.
func build(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "directory")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func TestDriverPassesCheck(t *testing.T) {
	report, err := conformance.Run(context.Background(), conformance.Config{
		Driver: "example.com/directory", File: build(t), Options: map[string]string{"base": "{dir}"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Count(conformance.Wrong)+report.Count(conformance.Risk) > 0 || report.Count(conformance.OK) < 30 {
		var table strings.Builder
		_ = report.Print(&table)
		t.Error(table.String())
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	driver := flexvolume.NewDriver("example.com/directory", build(t), flexvolume.Settings{})
	for option, values := range map[string][]string{"base": {"relative", "./x"}, "name": {"../x", ".hidden", "a/b"}} {
		for _, value := range values {
			mounting := flexvolume.MountRequest{Volume: flexvolume.Volume{Name: "pv1", Options: map[string]string{option: value}}}
			err := driver.Mount(context.Background(), t.TempDir(), mounting)
			if flexvolume.KindOf(err) != flexvolume.KindFailure || !strings.Contains(err.Error(), "option "+option+" is") {
				t.Errorf("%s %q: %v", option, value, err)
			}
		}
	}
}
