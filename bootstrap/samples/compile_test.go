package samples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgramsAreCompiledIntoTheArchive(t *testing.T) {
	selected, err := Select([]string{"pipeline-runner"})
	if err != nil {
		t.Fatal(err)
	}
	image := *selected[0]
	dir, archive := t.TempDir(), filepath.Join(t.TempDir(), Archive)
	if err := os.WriteFile(filepath.Join(dir, "package"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("tar", "-cf", archive, "-C", dir, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	image.Compile = `test -e package; cp "$IMAGE_ROOT/usr/share/slipway/runner/Main.groovy" compiled`
	work := t.TempDir()
	if err := image.Compiled(t.Context(), archive, work); err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command("tar", "-tf", archive).CombinedOutput()
	if got := strings.Fields(string(output)); err != nil || strings.Join(got, " ") != "./ ./compiled ./package" && strings.Join(got, " ") != "./ ./package ./compiled" {
		t.Errorf("the archive contains %s, %v", got, err)
	}
	if remains, err := os.ReadDir(work); err != nil || len(remains) > 0 {
		t.Errorf("temporary files are left: %v, %v", remains, err)
	}
	image.Compile = "echo no compiler >&2; exit 1"
	if err := image.Compiled(t.Context(), archive, work); err == nil || !strings.Contains(err.Error(), "no compiler") {
		t.Errorf("a failed command: %v", err)
	}
}
