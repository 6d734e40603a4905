// Package program finds programs in the directories where distributions install them.
package program

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Find returns a program's path. It searches PATH, followed by /usr/local/sbin and /usr/sbin.
func Find(name string) (path string, ok bool) {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/local/sbin", "/usr/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, true
		}
	}
	return "", false
}
