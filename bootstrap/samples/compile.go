package samples

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Compiled extracts an archive that Unpack has written, runs the commands in Compile in the
// resulting directory, and writes the directory back to the archive. It requires root. work is a
// directory for temporary files.
func (i *Image) Compiled(ctx context.Context, archive, work string) error {
	system, own := filepath.Join(work, "system"), filepath.Join(work, "own")
	if err := os.Mkdir(system, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(system)
	if _, err := i.writeRoot(own); err != nil {
		return err
	}
	defer os.RemoveAll(own)
	for _, command := range [][]string{
		{"tar", "--numeric-owner", "-xpf", archive, "-C", system},
		{"sh", "-euc", "cd \"$0\"\n" + i.Compile, system},
		{"tar", "--numeric-owner", "-cf", archive, "-C", system, "."},
	} {
		run := exec.CommandContext(ctx, command[0], command[1:]...)
		run.Env = append(os.Environ(), "IMAGE_ROOT="+own)
		if output, err := run.CombinedOutput(); err != nil {
			return fmt.Errorf("compile programs of image %q: %s: %w: %s", i.Name, command[0], err, lastLines(string(output)))
		}
	}
	return nil
}
