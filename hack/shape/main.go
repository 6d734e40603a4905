// Command shape prints the shape of the repository: for every package its lines of code and of
// tests, what it says it is for, and which packages of ours it imports. It informs, it does not
// judge; the rules are in internal/repocheck.
//
//	go run ./hack/shape
package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints the packages below the folder root, sorted by path.
func run(root string) error {
	packages, err := load(root)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	report(out, packages)
	return out.Flush()
}
