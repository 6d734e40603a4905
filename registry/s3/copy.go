package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
)

// uploads lists the multipart uploads of objects whose names begin with prefix. If listing fails,
// the error is the last element.
func (s *storage) uploads(ctx context.Context, prefix string) iter.Seq2[minio.ObjectMultipartInfo, error] {
	return func(yield func(minio.ObjectMultipartInfo, error) bool) {
		for key, id := "", ""; ; {
			page, err := s.client.ListMultipartUploads(ctx, s.bucket, prefix, key, id, "", 0)
			if err != nil {
				yield(minio.ObjectMultipartInfo{}, fmt.Errorf("list uploads: %w", err))
				return
			}
			for _, upload := range page.Uploads {
				if !yield(upload, nil) {
					return
				}
			}
			if key, id = page.NextKeyMarker, page.NextUploadIDMarker; !page.IsTruncated {
				return
			}
		}
	}
}

// reopen allows more parts to be added to an upload whose last part is too small to be followed by
// another part. It completes the upload, and copies the object into a new upload.
func (w *writer) reopen() error {
	size := w.size
	if err := w.complete(w.ctx); err != nil {
		return err
	}
	if err := w.start(); err != nil {
		return err
	}
	full := size / w.copyPart * w.copyPart
	if size-full >= minPart {
		full = size
	}
	if full > 0 {
		parts, err := w.copyRange(w.ctx, w.key, w.key, w.upload, full)
		if err != nil {
			return err
		}
		for _, part := range parts {
			w.add(part)
		}
	}
	if full == size {
		return nil
	}
	rest := minio.GetObjectOptions{}
	if err := rest.SetRange(full, size-1); err != nil {
		return err
	}
	content, _, _, err := w.client.GetObject(w.ctx, w.bucket, w.key, rest)
	if err != nil {
		return fmt.Errorf("read object %q: %w", w.key, err)
	}
	defer content.Close()
	w.buffer = make([]byte, size-full, w.part)
	if _, err := io.ReadFull(content, w.buffer); err != nil {
		return fmt.Errorf("read object %q: %w", w.key, err)
	}
	return nil
}

// copyParts copies a large object in parts.
func (s *storage) copyParts(ctx context.Context, from, to string, size int64) error {
	upload, err := s.client.NewMultipartUpload(ctx, s.bucket, s.key(to), s.options)
	if err != nil {
		return err
	}
	parts, err := s.copyRange(ctx, s.key(from), s.key(to), upload, size)
	if err != nil {
		return errors.Join(err, s.client.AbortMultipartUpload(context.WithoutCancel(ctx), s.bucket, s.key(to), upload))
	}
	return (&writer{storage: s, key: s.key(to), upload: upload, parts: parts}).complete(ctx)
}

// copyRange makes S3 copy the first bytes of an object to the first parts of an upload. It sends
// several requests concurrently.
func (s *storage) copyRange(ctx context.Context, from, to, upload string, size int64) ([]minio.ObjectPart, error) {
	parts := make([]minio.ObjectPart, (size+s.copyPart-1)/s.copyPart)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(int(s.copies))
	for i := range parts {
		group.Go(func() error {
			start := int64(i) * s.copyPart
			length := min(s.copyPart, size-start)
			part, err := s.client.CopyObjectPart(ctx, s.bucket, from, s.bucket, to, upload, i+1, start, length, nil)
			parts[i] = minio.ObjectPart{PartNumber: i + 1, ETag: part.ETag, Size: length}
			return err
		})
	}
	return parts, group.Wait()
}
