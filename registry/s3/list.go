package s3

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/minio/minio-go/v7"
)

// objects lists objects, sorted by name. If listing fails or ctx is canceled, the error is the last
// element.
func (s *storage) objects(ctx context.Context, options minio.ListObjectsOptions) iter.Seq2[minio.ObjectInfo, error] {
	options.FetchOwner = new(bool)
	return func(yield func(minio.ObjectInfo, error) bool) {
		for object := range s.client.ListObjectsIter(ctx, s.bucket, options) {
			if !yield(object, object.Err) || object.Err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil { // the client ends the list without an error
			yield(minio.ObjectInfo{}, err)
		}
	}
}

// List returns the paths of the files and directories in a directory.
func (s *storage) List(ctx context.Context, dir string) ([]string, error) {
	paths, prefix := []string{}, s.prefix(dir)
	for object, err := range s.objects(ctx, minio.ListObjectsOptions{Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		if object.Key != prefix { // other programs mark empty directories with this key
			paths = append(paths, s.file(object.Key))
		}
	}
	if len(paths) == 0 && dir != "/" {
		return nil, driver.PathNotFoundError{Path: dir}
	}
	return paths, nil
}

// Walk calls visit for everything below a directory. It visits each directory before the
// directory's content.
func (s *storage) Walk(ctx context.Context, dir string, visit driver.WalkFn, with ...func(*driver.WalkOptions)) error {
	var hints driver.WalkOptions
	for _, set := range with {
		set(&hints)
	}
	options := minio.ListObjectsOptions{Prefix: s.prefix(dir), Recursive: true}
	if hints.StartAfterHint != "" {
		options.StartAfter = s.key(hints.StartAfterHint)
	}
	walk := walk{root: strings.TrimRight(dir, "/"), visit: visit}
	for object, err := range s.objects(ctx, options) {
		if err == nil {
			err = walk.enter(s.file(object.Key))
		}
		if err == nil && !strings.HasSuffix(object.Key, "/") {
			info := driver.FileInfoFields{Path: s.file(object.Key), Size: object.Size, ModTime: object.LastModified}
			err = walk.call(info)
		}
		if errors.Is(err, driver.ErrFilledBuffer) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// walk derives the directories from a sorted list of files.
type walk struct {
	root    string // path without a trailing slash
	visit   driver.WalkFn
	last    string // path of the previous file
	skipped string // the directory that visit skipped last
}

// enter visits a file's directories, except the directories that also contain the previous file.
func (w *walk) enter(file string) error {
	for i := len(w.root) + 1; i < len(file); i++ {
		if dir := file[:i]; file[i] == '/' && !strings.HasPrefix(w.last, dir+"/") {
			if err := w.call(driver.FileInfoFields{Path: dir, IsDir: true}); err != nil {
				return err
			}
		}
	}
	w.last = file
	return nil
}

// call visits a file or directory unless it is in a skipped directory.
func (w *walk) call(info driver.FileInfoFields) error {
	if w.skipped != "" && strings.HasPrefix(info.Path, w.skipped+"/") {
		return nil
	}
	err := w.visit(driver.FileInfoInternal{FileInfoFields: info})
	if errors.Is(err, driver.ErrSkipDir) {
		if info.IsDir {
			w.skipped = info.Path
		}
		return nil
	}
	return err
}

// code returns the code of an S3 error, or "" for other errors.
func code(err error) string { return minio.ToErrorResponse(err).Code }

// explain converts an S3 error for a missing object to the error that distribution expects. It
// returns other errors unchanged.
func explain(path string, err error) error {
	response := minio.ToErrorResponse(err)
	if response.Code == minio.NoSuchKey || response.Code == "NotFound" && response.StatusCode == http.StatusNotFound {
		return driver.PathNotFoundError{Path: path}
	}
	return err
}

// missing reports whether a file or directory does not exist.
func missing(err error) bool {
	var none driver.PathNotFoundError
	return errors.As(err, &none)
}
