// Package logfile opens, rotates and reads the log files of processes.
//
// A process writes its log file directly, so that its last lines are in the file even if the
// supervisor is killed. The supervisor limits the size of the file.
package logfile

import (
	"fmt"
	"os"
	"path/filepath"
)

// Open opens a log file for appending. It creates the file's directory if it does not exist.
func Open(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create log directory: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return file, nil
}
