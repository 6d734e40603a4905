package payload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/payload/manifest"
)

// partial is the name prefix of directories that are being written or removed. Such directories can
// remain after a crash.
const partial = ".partial-"

// unpack writes the named programs in files to a subdirectory of dir, and returns the subdirectory.
func unpack(files fs.FS, dir string, names ...string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("unpack programs: %w", err)
	}
	all, err := manifest.Read(files)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNotEmbedded
	}
	if err != nil {
		return "", fmt.Errorf("unpack programs: %w", err)
	}
	m, err := all.Select(names...)
	if err != nil {
		return "", fmt.Errorf("%w (%w)", ErrNotEmbedded, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("unpack programs: %w", err)
	}
	unlock, err := lock(filepath.Join(dir, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()

	target := filepath.Join(dir, m.ID())
	// Ignore the error, because unused versions only take up disk space, and the next start tries
	// again.
	_ = removeStale(dir, m.ID())
	if intact(target, m) {
		return target, nil
	}
	return target, write(files, m, target)
}

// lock waits until no other process is unpacking to the same directory. The lock is released when
// the process exits.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock programs: %w", err)
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %q: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// intact reports whether dir contains all programs unchanged. It compares size, mode and seal
// without reading the contents.
func intact(dir string, m manifest.Manifest) bool {
	for _, program := range m.Programs {
		info, err := os.Lstat(filepath.Join(dir, program.Name))
		if err != nil || info.Mode() != 0o755 || info.Size() != program.Size || !info.ModTime().Equal(seal(program)) {
			return false
		}
	}
	return true
}

// seal returns the modification time for a program whose content has been verified and is on disk.
// The time depends on the content and is between 2001 and 2035. A later write changes the
// modification time, so comparing the time is sufficient to detect changed content.
func seal(program manifest.Program) time.Time {
	sum, _ := hex.DecodeString(program.SHA256)
	sum = append(sum, 0, 0, 0, 0)
	return time.Unix(1_000_000_000+int64(binary.BigEndian.Uint32(sum)>>2), 0)
}

// write unpacks all programs to the target directory. It replaces any existing content.
func write(files fs.FS, m manifest.Manifest, target string) error {
	dir := filepath.Dir(target)
	if err := checkSpace(dir, m.Size()); err != nil {
		return fmt.Errorf("unpack programs to %q: %w", target, err)
	}
	temp, err := os.MkdirTemp(dir, partial)
	if err != nil {
		return fmt.Errorf("unpack programs: %w", err)
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return fmt.Errorf("unpack programs: %w", err)
	}
	for _, program := range m.Programs {
		if err := writeProgram(files, program, temp); err != nil {
			return fmt.Errorf("unpack program %q: %w", filepath.Join(target, program.Name), explainSpace(err, dir, m.Size()))
		}
	}
	if err := atomicfile.SyncFolder(temp); err != nil {
		return err
	}
	if _, err := os.Lstat(target); err == nil {
		damaged := filepath.Join(dir, partial+"damaged-"+filepath.Base(temp)[len(partial):])
		if err := os.Rename(target, damaged); err != nil {
			return fmt.Errorf("replace damaged programs: %w", err)
		}
		defer os.RemoveAll(damaged)
	}
	if err := os.Rename(temp, target); err != nil {
		return fmt.Errorf("unpack programs: %w", err)
	}
	return atomicfile.SyncFolder(dir)
}

// writeProgram decompresses one program into dir, verifies it, and seals it once it is on disk.
func writeProgram(files fs.FS, program manifest.Program, dir string) error {
	content, err := open(files, program)
	if err != nil {
		return err
	}
	defer content.Close()
	path := filepath.Join(dir, program.Name)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, sum), content); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != program.SHA256 {
		return errors.New("the slipway binary is damaged: checksum differs; install it again")
	}
	if err := file.Chmod(0o755); err != nil {
		return err
	}
	if err := os.Chtimes(path, seal(program), seal(program)); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return file.Close()
}
