// Command affected prints the packages that a change can break. These are packages with files that
// differ from the main branch, committed or not, and packages that import them, including in tests.
// It omits packages whose tests boot a cluster or build a server program.
//
//	go run ./hack/affected [-base main] [-changed]
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

func main() {
	base := flag.String("base", "main", "branch or commit to compare with")
	changedOnly := flag.Bool("changed", false, "print only the packages with changed files")
	flag.Parse()
	if err := run(os.Stdout, *base, *changedOnly); err != nil {
		fmt.Fprintln(os.Stderr, "affected:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, base string, changedOnly bool) error {
	files, err := changedFiles(base)
	if err != nil {
		return err
	}
	packages, err := loadPackages()
	if err != nil {
		return err
	}
	paths := packages.changed(files)
	if !changedOnly {
		paths = packages.affected(paths)
	}
	for _, path := range paths {
		fmt.Fprintln(out, "./"+strings.TrimPrefix(path, module+"/"))
	}
	return nil
}

// changedFiles returns the paths of files that differ from the common ancestor of base and HEAD,
// and of untracked files.
func changedFiles(base string) ([]string, error) {
	ancestor, err := git("merge-base", base, "HEAD")
	if err != nil {
		return nil, fmt.Errorf("compare with %q: %w; set another branch with BASE=", base, err)
	}
	tracked, err := git("diff", "--name-only", strings.TrimSpace(ancestor))
	if err != nil {
		return nil, err
	}
	untracked, err := git("ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return strings.Fields(tracked + untracked), nil
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}
