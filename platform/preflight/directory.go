package preflight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// minInodes is the minimum number of free inodes. Images contain tens of thousands of files.
const minInodes = 20_000

// maxSocketPath is the maximum length of a Unix socket path, in bytes (unix(7): 108 including the
// terminating null byte).
const maxSocketPath = 107

// checkDirectories checks the file system of each directory. It reports a problem that affects a
// whole file system only for the first directory on that file system.
func checkDirectories(_ context.Context, want Requirements, machine Machine) []Problem {
	var problems []Problem
	seen := map[string]bool{}
	for _, directory := range want.Directories {
		place := existing(directory.Path)
		subject := "directory " + directory.Path
		var fs unix.Statfs_t
		if err := machine.Statfs(place, &fs); err != nil {
			problems = append(problems, Problem{Error, subject, fmt.Sprintf("cannot be examined: %v", err), "choose another directory"})
			continue
		}
		match := writable(directory, place, machine)
		if len(match) == 0 {
			match = append(match, space(directory, place, fs)...)
		}
		if directory.Programs && fs.Flags&unix.ST_NOEXEC != 0 {
			match = append(match, Problem{Error, subject, "is on a file system that is mounted with noexec, but Slipway starts programs from it",
				"mount -o remount,exec " + mountPoint(place) + "\nchoose another directory with --data-dir"})
		}
		for _, problem := range match {
			key := fmt.Sprint(fs.Fsid, problem.Text)
			if !seen[key] {
				problems = append(problems, problem)
			}
			seen[key] = true
		}
	}
	return problems
}

// writable checks that a file can be created and removed. If the user is not root, it checks
// nothing, because the user might not have permission.
func writable(directory Directory, place string, machine Machine) []Problem {
	if !machine.isRoot() {
		return nil
	}
	subject := "directory " + directory.Path
	file, err := os.CreateTemp(place, "preflight-")
	if err == nil {
		_, err = file.Write([]byte{0})
		err = errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOSPC):
		return []Problem{{Error, subject, "is on a disk that is full", freeSomeSpace(place)}}
	case errors.Is(err, unix.EROFS):
		return []Problem{{Error, subject, "is on a file system that is mounted read-only",
			"mount -o remount,rw " + mountPoint(place) + "\nchoose another directory with --data-dir"}}
	case errors.Is(err, unix.ENOTDIR):
		return []Problem{{Error, subject, fmt.Sprintf("cannot be created: %s is a file", place), "choose another directory with --data-dir"}}
	}
	return []Problem{{Error, subject, fmt.Sprintf("cannot be written: %v", err), "choose another directory with --data-dir"}}
}

func space(directory Directory, place string, fs unix.Statfs_t) []Problem {
	const mega = 1_000_000
	subject := "directory " + directory.Path
	var problems []Problem
	if free := fs.Bavail * uint64(fs.Bsize); free < directory.Free {
		problems = append(problems, Problem{Error, subject,
			fmt.Sprintf("has %d MB free on its disk, %d MB are needed", free/mega, directory.Free/mega), freeSomeSpace(place)})
	}
	if fs.Files > 0 && fs.Ffree < minInodes { // file systems without a fixed number of inodes report 0
		problems = append(problems, Problem{Error, subject,
			fmt.Sprintf("has room for %d more files (inodes) on its disk, %d are needed", fs.Ffree, minInodes), freeSomeSpace(place)})
	}
	return problems
}

func freeSomeSpace(place string) string {
	return "remove unneeded files; to list the largest, run: du -xh " + mountPoint(place) + " | sort -h | tail\n" +
		"choose a directory on another disk with --data-dir"
}

func checkSockets(_ context.Context, want Requirements, _ Machine) []Problem {
	longest := ""
	for _, path := range want.Sockets {
		if len(path) > len(longest) {
			longest = path
		}
	}
	if len(longest) <= maxSocketPath {
		return nil
	}
	return []Problem{{Error, "socket " + filepath.Base(longest),
		fmt.Sprintf("has a path of %d bytes, and the kernel allows %d: %s", len(longest), maxSocketPath, longest),
		fmt.Sprintf("choose a data directory whose path is %d bytes shorter with --data-dir\nset slipway.runDirectory in node-config.yaml",
			len(longest)-maxSocketPath)}}
}

// existing returns the path or its nearest existing ancestor directory.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// mountPoint returns the directory at which the file system of an existing path is mounted.
func mountPoint(path string) string {
	device := func(path string) uint64 {
		var stat unix.Stat_t
		if unix.Stat(path, &stat) != nil {
			return 0
		}
		return stat.Dev
	}
	for path != "/" && device(path) == device(filepath.Dir(path)) {
		path = filepath.Dir(path)
	}
	return path
}

// isOverlay reports whether a path is on an overlay file system, as in most containers.
func (m Machine) isOverlay(path string) bool {
	var fs unix.Statfs_t
	return m.Statfs(path, &fs) == nil && int64(fs.Type) == unix.OVERLAYFS_SUPER_MAGIC
}
