package samples

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// release is the code name of the Debian release that the images are built from.
const release = "bookworm"

// basePackages are the packages in every image. Application scripts require bash. Time zone data is
// required for the TZ environment variable, and by frameworks such as Rails, which do not start
// without it.
const basePackages = "bash,dash,coreutils,findutils,grep,sed,tar,gzip,libc-bin,ca-certificates,tzdata"

// baseOmitted contains paths that every image omits.
const baseOmitted = "/usr/share/doc/* /usr/share/man/* /usr/share/info/* /usr/share/locale/* /usr/share/lintian/*"

// errNoTool is the error that Unpack returns if mmdebstrap is not installed.
var errNoTool = errors.New("the program mmdebstrap is not installed: install the package mmdebstrap, " +
	"or run `slipway samples download` on a machine with Debian and build with --from")

// Unpack writes an image's file system, with its Debian packages unpacked and set up, to a tar
// file. It requires root, mmdebstrap, and a Debian mirror. mirror is a URL or a sources.list line.
// If mirror is empty, Unpack uses the default mirror. It replaces an existing file only on success.
func (i *Image) Unpack(ctx context.Context, file, mirror string) error {
	tool, err := exec.LookPath("mmdebstrap")
	if err != nil {
		return fmt.Errorf("unpack packages of %q: %w", i.Name, errNoTool)
	}
	work, err := os.MkdirTemp("", "slipway-samples-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.Chmod(work, 0o755); err != nil { // apt reads files as another user
		return err
	}
	hook := filepath.Join(work, "configure.sh")
	script, err := files.ReadFile("base/configure.sh")
	if err == nil {
		err = os.WriteFile(hook, script, 0o700)
	}
	if err != nil {
		return err
	}
	part := file + ".part"
	defer os.Remove(part)
	command := exec.CommandContext(ctx, tool, i.unpackArguments(hook, part, mirror)...)
	command.Env = append(os.Environ(), "TMPDIR="+work, "IMAGE_USER="+i.User, "IMAGE_UID="+strconv.Itoa(i.UID),
		"IMAGE_HOME="+i.Home, "IMAGE_WRITABLE="+strings.Join(i.Writable, " "), "IMAGE_SETUP="+i.Setup)
	var output strings.Builder
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("unpack packages of %q: %w: %s", i.Name, err, lastLines(output.String()))
	}
	return os.Rename(part, file)
}

// unpackArguments returns mmdebstrap's arguments. mmdebstrap extracts the packages but does not
// configure them, so the image requires no package manager. The hook replaces the configuration
// step.
func (i *Image) unpackArguments(hook, file, mirror string) []string {
	arguments := []string{
		"--quiet", "--mode=root", "--format=tar", "--variant=extract", "--aptopt=Acquire::Retries \"5\"",
		"--include=" + basePackages + "," + strings.Join(i.Packages, ","),
		"--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "--extract-hook=" + hook,
	}
	for _, pattern := range append(strings.Fields(baseOmitted), i.Omit...) {
		arguments = append(arguments, "--dpkgopt=path-exclude="+pattern)
	}
	for _, pattern := range i.Keep {
		arguments = append(arguments, "--dpkgopt=path-include="+pattern)
	}
	arguments = append(arguments, release, file)
	if mirror != "" {
		arguments = append(arguments, mirror)
	}
	return arguments
}

// lastLines returns the last lines of a program's output.
func lastLines(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "; ")
}
