package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// beforePrefix is the file name prefix of a copy that was saved before an upgrade. The prefix is
// followed by the version of the program that wrote the data.
const beforePrefix = "before-upgrade-of-"

// Stopped returns a source that copies the database of a stopped member.
func Stopped(database string) Source {
	return func(_ context.Context, out io.Writer) error {
		file, err := os.Open(database)
		if err != nil {
			return fmt.Errorf("copy etcd database: %w", err)
		}
		defer file.Close()
		hash := sha256.New()
		if _, err := io.Copy(io.MultiWriter(out, hash), file); err != nil {
			return fmt.Errorf("copy etcd database: %w", err)
		}
		_, err = out.Write(hash.Sum(nil))
		return err
	}
}

// BeforeUpgrade saves the database of a stopped member before a program of a different version
// opens the database. version is the version of the program that wrote the data. BeforeUpgrade
// returns the path of the copy, or "" if no database exists. If it runs again during the same
// upgrade, it saves nothing, because the data might have changed. It removes the copies from
// earlier upgrades.
func BeforeUpgrade(ctx context.Context, database, dir, version string) (path string, err error) {
	if _, err := os.Stat(database); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create snapshot directory: %w", err)
	}
	path = filepath.Join(dir, beforePrefix+version+suffix)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if _, err := Save(ctx, Stopped(database), path); err != nil {
		return "", err
	}
	saved, err := filepath.Glob(filepath.Join(dir, beforePrefix+"*"+suffix))
	if err != nil {
		return "", fmt.Errorf("list snapshots: %w", err)
	}
	for _, former := range saved {
		if former == path {
			continue
		}
		if err := os.Remove(former); err != nil {
			return "", fmt.Errorf("remove snapshot of an earlier upgrade: %w", err)
		}
	}
	return path, nil
}
