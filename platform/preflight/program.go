package preflight

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func checkUser(_ context.Context, _ Requirements, machine Machine) []Problem {
	if machine.isRoot() {
		return nil
	}
	return []Problem{{Error, "user", "only root can mount, change the network and start containers", "run the command with sudo"}}
}

// checkPrograms reports each missing program. One command installs all of them.
func checkPrograms(_ context.Context, want Requirements, machine Machine) []Problem {
	var problems []Problem
	var packages []string
	for _, program := range want.Programs {
		if machine.program(program.Name) != "" {
			continue
		}
		problems = append(problems, Problem{Error, "program " + program.Name, "is not installed", ""})
		packages = append(packages, program.Package)
	}
	slices.Sort(packages)
	remedy := machine.install(slices.Compact(packages))
	for i := range problems {
		problems[i].Remedy = remedy
	}
	return problems
}

// checkImagePrograms reports each program whose absence prevents the host from creating an image.
func checkImagePrograms(_ context.Context, want Requirements, machine Machine) []Problem {
	var problems []Problem
	for _, program := range want.ImagePrograms {
		if machine.program(program.Name) != "" {
			continue
		}
		problems = append(problems, Problem{Warning, "program " + program.Name,
			"is not installed: pods with the image localhost/slipway-tools, which templates and examples use, do not start",
			machine.install([]string{program.Package})})
	}
	return problems
}

// program returns the path of a program in the machine's PATH, or "" if the program does not exist.
func (m Machine) program(name string) string {
	for _, dir := range filepath.SplitList(m.Path) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// install returns a command that installs Debian packages, or the equivalent for the machine's
// distribution.
func (m Machine) install(packages []string) string {
	names := strings.Join(packages, " ")
	for _, like := range m.distribution() {
		switch like {
		case "debian", "ubuntu":
			return "apt-get install -y " + names
		case "fedora", "rhel":
			// The package names are the same as in Debian, except for the package that contains
			// mount.
			return "dnf install -y " + strings.ReplaceAll(names, "mount", "util-linux")
		}
	}
	return "install the equivalents of these Debian packages with the package manager: " + names
}

// distribution returns the machine's distribution and the distributions that it is similar to, from
// os-release(5).
func (m Machine) distribution() []string {
	file, err := os.Open(filepath.Join(m.Root, "etc/os-release"))
	if err != nil {
		return nil
	}
	defer file.Close()
	var paths []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		if key == "ID" || key == "ID_LIKE" {
			paths = append(paths, strings.Fields(strings.Trim(value, `"'`))...)
		}
	}
	return paths
}
