package source

import (
	"os"

	"github.com/go-git/go-billy/v5"
)

// limitedFiles are files that a limit holds for.
type limitedFiles struct {
	billy.Filesystem
	limit *Limit
}

func (l limitedFiles) counted(file billy.File, err error) (billy.File, error) {
	if err != nil {
		return nil, err
	}
	if err := l.limit.file(); err != nil {
		file.Close()
		return nil, err
	}
	return limitedFile{file, l.limit}, nil
}

func (l limitedFiles) Create(name string) (billy.File, error) {
	return l.counted(l.Filesystem.Create(name))
}

func (l limitedFiles) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return l.Filesystem.OpenFile(name, flag, perm)
	}
	return l.counted(l.Filesystem.OpenFile(name, flag, perm))
}

func (l limitedFiles) TempFile(dir, prefix string) (billy.File, error) {
	return l.counted(l.Filesystem.TempFile(dir, prefix))
}

func (l limitedFiles) Chroot(path string) (billy.Filesystem, error) {
	inner, err := l.Filesystem.Chroot(path)
	return limitedFiles{inner, l.limit}, err
}

// limitedFile is an open one.
type limitedFile struct {
	billy.File
	limit *Limit
}

func (f limitedFile) Write(p []byte) (int, error) { return limited{f.File, f.limit}.Write(p) }
