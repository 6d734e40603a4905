package source

import (
	"os"

	"github.com/go-git/go-billy/v5"
)

// limitedFiles is a file system that counts created files and written bytes against a Limit.
type limitedFiles struct {
	billy.Filesystem
	limit *Limit
}

func (l limitedFiles) count(file billy.File, err error) (billy.File, error) {
	if err != nil {
		return nil, err
	}
	if err := l.limit.addFile(); err != nil {
		file.Close()
		return nil, err
	}
	return limitedFile{file, l.limit}, nil
}

func (l limitedFiles) Create(name string) (billy.File, error) {
	return l.count(l.Filesystem.Create(name))
}

func (l limitedFiles) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return l.Filesystem.OpenFile(name, flag, perm)
	}
	return l.count(l.Filesystem.OpenFile(name, flag, perm))
}

func (l limitedFiles) TempFile(dir, prefix string) (billy.File, error) {
	return l.count(l.Filesystem.TempFile(dir, prefix))
}

func (l limitedFiles) Chroot(path string) (billy.Filesystem, error) {
	inner, err := l.Filesystem.Chroot(path)
	return limitedFiles{inner, l.limit}, err
}

type limitedFile struct {
	billy.File
	limit *Limit
}

func (f limitedFile) Write(p []byte) (int, error) { return limitedWriter{f.File, f.limit}.Write(p) }
