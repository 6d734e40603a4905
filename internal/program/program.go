// Package program finds programs where distributions install them.
package program

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Find returns the path of a program. It searches PATH, then /usr/local/sbin and /usr/sbin.
func Find(name string) (path string, ok bool) {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/local/sbin", "/usr/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, true
		}
	}
	return "", false
}
