package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/minio/minio-go/v7"
)

// Delete removes a file, or a directory with all its files, and aborts the uploads of these files.
func (s *storage) Delete(ctx context.Context, path string) error {
	aborted, err := s.abortBelow(ctx, path)
	if err != nil {
		return err
	}
	removed, err := s.removeBelow(ctx, path)
	if err != nil || removed > 0 {
		return err
	}
	if _, err := s.client.StatObject(ctx, s.bucket, s.key(path), minio.StatObjectOptions{}); err != nil {
		if err := explain(path, err); !missing(err) || aborted == 0 {
			return err
		}
		return nil
	}
	return s.client.RemoveObject(ctx, s.bucket, s.key(path), minio.RemoveObjectOptions{})
}

// removeBelow removes all objects below a directory and returns the number of removed objects.
func (s *storage) removeBelow(ctx context.Context, dir string) (count int, err error) {
	var failure error
	listed := func(yield func(minio.ObjectInfo) bool) {
		for object, err := range s.objects(ctx, minio.ListObjectsOptions{Prefix: s.prefix(dir), Recursive: true}) {
			if failure = err; err != nil || !yield(object) {
				return
			}
		}
	}
	results, err := s.client.RemoveObjectsWithIter(ctx, s.bucket, listed, minio.RemoveObjectsOptions{})
	if err != nil {
		return 0, err
	}
	var problems []error
	for removal := range results {
		if count++; removal.Err != nil {
			problems = append(problems, fmt.Errorf("remove object %q: %w", removal.ObjectName, removal.Err))
		}
	}
	return count, errors.Join(append(problems, failure, ctx.Err())...)
}

// abortBelow aborts the uploads of a file, or of all files in a directory, and returns the number
// of aborted uploads. The parts of an upload that is not aborted use space indefinitely.
func (s *storage) abortBelow(ctx context.Context, path string) (count int, err error) {
	for upload, err := range s.uploads(ctx, s.key(path)) {
		if err != nil {
			return count, err
		}
		if upload.Key != s.key(path) && !strings.HasPrefix(upload.Key, s.prefix(path)) {
			continue
		}
		err := s.client.AbortMultipartUpload(ctx, s.bucket, upload.Key, upload.UploadID)
		if err != nil && code(err) != minio.NoSuchUpload {
			return count, fmt.Errorf("abort upload of object %q: %w", upload.Key, err)
		}
		count++
	}
	return count, nil
}

// Move renames a file.
func (s *storage) Move(ctx context.Context, from, to string) error {
	object, err := s.client.StatObject(ctx, s.bucket, s.key(from), minio.StatObjectOptions{})
	if err != nil {
		return explain(from, err)
	}
	if object.Size <= s.copyThreshold {
		headers := map[string]string{}
		for name, values := range s.options.Header() {
			headers[name] = values[0]
		}
		_, err = s.client.CopyObject(ctx, s.bucket, s.key(from), s.bucket, s.key(to), headers, minio.CopySrcOptions{}, minio.PutObjectOptions{})
	} else {
		err = s.copyParts(ctx, from, to, object.Size)
	}
	if err != nil {
		return fmt.Errorf("copy object %q to %q: %w", s.key(from), s.key(to), explain(from, err))
	}
	return s.client.RemoveObject(ctx, s.bucket, s.key(from), minio.RemoveObjectOptions{})
}

var _ driver.StorageDriver = (*storage)(nil)
