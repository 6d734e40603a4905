package image

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestBuildIDOfGoProgram(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := exec.Command("go", "tool", "buildid", executable).Output()
	if err != nil {
		t.Fatal(err)
	}
	got, err := buildID(executable)
	if err != nil {
		t.Fatal(err)
	}
	if got != strings.TrimSpace(string(want)) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBuildIDFallsBackToChecksum(t *testing.T) {
	got, err := buildID("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	want, err := checksum("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
