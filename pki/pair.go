package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// A single rename cannot replace both files of a pair. Therefore, during a replacement, both files
// are symbolic links into a directory. The path of this directory is itself a symbolic link, whose
// target is changed by a single rename. For server.crt and server.key, the steps are:
//
//	server.crt -> .server.pair/server.crt    .server.pair -> .server.old
//	server.crt -> .server.pair/server.crt    .server.pair -> .server.new
//	server.crt, a file again                 .server.pair, .server.old and .server.new are removed
//
// A reader that opens both files reads either the old pair or the new pair, even if the writing
// process is killed at any point. A reader that opens one file before the rename and the other file
// after it reads files that do not match. It must then read both files again, as Kubernetes'
// servers do.

// stage returns the path of a hidden file or directory next to the pair, such as `.server.old`.
func (p Pair) stage(kind string) string {
	dir, name := filepath.Split(p.Cert)
	return filepath.Join(dir, "."+strings.TrimSuffix(name, ".crt")+"."+kind)
}

// replace writes a new certificate and its key, both in PEM. It creates missing files. If the
// certificate does not exist, as on the first start, no reader uses the pair yet. In this case,
// replace writes the key first and the certificate second.
func (p Pair) replace(cert, key []byte) error {
	if _, err := os.Lstat(p.Cert); errors.Is(err, fs.ErrNotExist) {
		if err := atomicfile.Write(p.Key, key, secret); err != nil {
			return err
		}
		return atomicfile.Write(p.Cert, cert, public)
	}
	old, next := p.stage("old"), p.stage("new")
	for _, dir := range []string{old, next} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("replace certificate %q: %w", p.Cert, err)
		}
	}
	for path, content := range map[string][]byte{p.Cert: cert, p.Key: key} {
		mode := fs.FileMode(secret)
		if path == p.Cert {
			mode = public
		}
		name := filepath.Base(path)
		if err := atomicfile.Write(filepath.Join(next, name), content, mode); err != nil {
			return err
		}
		before, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("replace certificate %q: %w", p.Cert, err)
		}
		if err := atomicfile.Write(filepath.Join(old, name), before, mode); err != nil {
			return err
		}
	}
	if err := p.point(old); err != nil {
		return err
	}
	for _, path := range p.files() {
		if err := link(filepath.Join(filepath.Base(p.stage("pair")), filepath.Base(path)), path); err != nil {
			return err
		}
	}
	if err := p.point(next); err != nil {
		return err
	}
	return p.settle()
}

// settle replaces the pair's links with the files that they point to, and removes the hidden
// directories. It thereby completes a replacement that a killed process started.
func (p Pair) settle() error {
	linked := false
	for _, path := range p.files() {
		info, err := os.Lstat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read certificate: %w", err)
		}
		if err != nil || info.Mode()&fs.ModeSymlink == 0 || !p.staged(path) {
			continue
		}
		linked = true
		if err := settleFile(path); err != nil {
			return err
		}
	}
	if linked {
		if err := atomicfile.SyncFolder(filepath.Dir(p.Cert)); err != nil {
			return err
		}
	}
	for _, kind := range []string{"pair", "old", "new"} {
		if err := os.RemoveAll(p.stage(kind)); err != nil {
			return fmt.Errorf("remove previous certificate: %w", err)
		}
	}
	return nil
}

// staged reports whether path is a link to the pair's hidden directory. Links that an administrator
// created are not staged, so settle does not change them.
func (p Pair) staged(path string) bool {
	target, err := os.Readlink(path)
	return err == nil && filepath.Dir(target) == filepath.Base(p.stage("pair"))
}

// settleFile replaces a link with the file that it points to, or removes the link if that file does
// not exist.
func settleFile(path string) error {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return removeFile(path)
	}
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	temporary := target + ".settled"
	if err := errors.Join(removeIfExists(temporary), os.Link(target, temporary), os.Rename(temporary, path)); err != nil {
		return fmt.Errorf("replace certificate %q: %w", path, err)
	}
	return nil
}

// point changes the target of the pair's link to dir.
func (p Pair) point(dir string) error { return link(filepath.Base(dir), p.stage("pair")) }

func (p Pair) files() []string { return []string{p.Cert, p.Key} }

// link creates a symbolic link to target at path, replacing an existing file, and syncs the
// directory.
func link(target, path string) error {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".link")
	if err := errors.Join(removeIfExists(temporary), os.Symlink(target, temporary), os.Rename(temporary, path)); err != nil {
		return fmt.Errorf("link %q: %w", path, err)
	}
	return atomicfile.SyncFolder(filepath.Dir(path))
}

// removeIfExists removes a file if it exists.
func removeIfExists(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// settlePairs settles the pairs of all leaf certificates.
func (i *issuer) settlePairs() error {
	for _, l := range i.leaves() {
		if err := l.files.settle(); err != nil {
			return err
		}
	}
	return nil
}
