package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/minio/minio-go/v7"
)

// writer writes a file as a multipart upload. All parts except the last part have the same size.
// Close keeps the upload, so that another writer can continue it.
type writer struct {
	*storage
	ctx       context.Context // the request's context, because Write has no context
	key       string
	upload    string
	parts     []minio.ObjectPart
	size      int64  // number of bytes in parts
	buffer    []byte // bytes that are not in a part yet
	endReason string // the reason why writing is no longer possible, or ""
}

// Writer returns a writer for a new file. If more is true, the writer continues a file that was not
// committed or is empty.
func (s *storage) Writer(ctx context.Context, file string, more bool) (driver.FileWriter, error) {
	w := &writer{storage: s, ctx: ctx, key: s.key(file)}
	if !more {
		return w, w.start()
	}
	for upload, err := range s.uploads(ctx, w.key) {
		if err != nil {
			return nil, err
		}
		if upload.Key == w.key {
			w.upload = upload.UploadID
			return w, w.resume()
		}
	}
	object, err := s.client.StatObject(ctx, s.bucket, w.key, minio.StatObjectOptions{})
	if err != nil {
		return nil, explain(file, err)
	}
	if object.Size > 0 {
		return nil, fmt.Errorf("append to %q: it is complete", file)
	}
	return w, w.start()
}

// start creates an upload.
func (w *writer) start() (err error) {
	w.upload, err = w.client.NewMultipartUpload(w.ctx, w.bucket, w.key, w.options)
	w.parts, w.size = nil, 0
	return err
}

// resume reads the parts of an existing upload.
func (w *writer) resume() error {
	for marker := 0; ; {
		page, err := w.client.ListObjectParts(w.ctx, w.bucket, w.key, w.upload, marker, 0)
		if err != nil {
			return fmt.Errorf("list parts of object %q: %w", w.key, err)
		}
		for _, part := range page.ObjectParts {
			w.add(part)
		}
		if marker = page.NextPartNumberMarker; !page.IsTruncated {
			return nil
		}
	}
}

// add records a stored part.
func (w *writer) add(part minio.ObjectPart) {
	w.parts = append(w.parts, part)
	w.size += part.Size
}

// Size returns the number of bytes written, including the bytes written by earlier writers of the
// same upload.
func (w *writer) Size() int64 { return w.size + int64(len(w.buffer)) }

// Write appends to the file.
func (w *writer) Write(content []byte) (count int, err error) {
	if err := w.open(); err != nil {
		return 0, err
	}
	if last := len(w.parts) - 1; last >= 0 && w.parts[last].Size < minPart {
		if err := w.reopen(); err != nil {
			return 0, err
		}
	}
	for len(content) > 0 {
		piece := content[:min(len(content), int(w.part)-len(w.buffer))]
		w.buffer = append(w.buffer, piece...)
		content, count = content[len(piece):], count+len(piece)
		if len(w.buffer) == int(w.part) {
			if err := w.flush(); err != nil {
				return count, err
			}
		}
	}
	return count, nil
}

// flush stores the buffer as a part, unless it is empty.
func (w *writer) flush() error {
	if len(w.buffer) == 0 {
		return nil
	}
	if err := w.store(w.buffer); err != nil {
		return err
	}
	w.buffer = w.buffer[:0]
	return nil
}

// store uploads content as the next part.
func (w *writer) store(content []byte) error {
	options := minio.PutObjectPartOptions{Sha256Hex: sum(content), DisableContentSha256: true}
	number, size := len(w.parts)+1, int64(len(content))
	part, err := w.client.PutObjectPart(w.ctx, w.bucket, w.key, w.upload, number, bytes.NewReader(content), size, options)
	if err != nil {
		return fmt.Errorf("write part %d of object %q: %w", number, w.key, err)
	}
	w.add(part)
	return nil
}

// Close stores all buffered content as a part, unless the writer was committed or canceled. The
// writer cannot be used after Close.
func (w *writer) Close() error {
	if w.endReason == "closed" {
		return w.open()
	}
	reason := w.endReason
	w.endReason = "closed"
	if reason != "" {
		return nil
	}
	defer func() { w.buffer = nil }()
	return w.flush()
}

// Cancel discards the upload.
func (w *writer) Cancel(ctx context.Context) error {
	if err := w.open(); err != nil {
		return err
	}
	w.endReason = "cancelled"
	return w.abort(ctx)
}

// abort discards the upload.
func (w *writer) abort(ctx context.Context) error {
	return w.client.AbortMultipartUpload(ctx, w.bucket, w.key, w.upload)
}

// Commit completes the file.
func (w *writer) Commit(ctx context.Context) error {
	if err := w.open(); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.endReason = "committed"
	if len(w.parts) > 0 {
		return w.complete(ctx)
	}
	// An upload needs at least one part, and some servers reject an empty part, so write an empty
	// file without an upload.
	if _, err := w.client.PutObject(ctx, w.bucket, w.key, bytes.NewReader(nil), 0, "", sum(nil), w.options); err != nil {
		return fmt.Errorf("write object %q: %w", w.key, err)
	}
	return w.abort(ctx)
}

// complete creates the object from the parts. If it fails, it aborts the upload.
func (w *writer) complete(ctx context.Context) error {
	parts := make([]minio.CompletePart, len(w.parts))
	for i, part := range w.parts {
		parts[i] = minio.CompletePart{PartNumber: part.PartNumber, ETag: part.ETag}
	}
	_, err := w.client.CompleteMultipartUpload(ctx, w.bucket, w.key, w.upload, parts, minio.PutObjectOptions{})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("complete object %q: %w", w.key, err)
	return errors.Join(err, w.abort(context.WithoutCancel(ctx)))
}

// open returns an error if the writer was closed, canceled or committed.
func (w *writer) open() error {
	if w.endReason != "" {
		return fmt.Errorf("write object %q: already %s", w.key, w.endReason)
	}
	return nil
}
