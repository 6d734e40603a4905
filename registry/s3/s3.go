// Package s3 stores the registry's files in an S3 bucket. It is a storage driver for distribution's
// registry. It takes the same settings and writes the same objects as distribution's own S3 driver,
// which depends on a library that is no longer maintained.
//
// A bucket has no directories: a directory exists as long as an object's name begins with its path.
// A file that is being written is a multipart upload, and cannot be read before Commit.
package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/base"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// Names returns the names that a registry's configuration can use for the driver.
func Names() []string { return []string{"s3", "s3aws"} }

// Check reports all problems with a driver's settings.
func Check(parameters map[string]any) error {
	if _, err := read(parameters); err != nil {
		return fmt.Errorf("storage.s3: %w", err)
	}
	return nil
}

// Factory creates drivers. It implements factory.StorageDriverFactory.
type Factory struct{}

// Create returns the driver that parameters describe. It reports all problems with the parameters
// together and sends no request.
func (Factory) Create(_ context.Context, parameters map[string]any) (driver.StorageDriver, error) {
	s, err := read(parameters)
	if err != nil {
		return nil, fmt.Errorf("read storage.s3: %w", err)
	}
	client, err := s.connect()
	if err != nil {
		return nil, fmt.Errorf("read storage.s3: %w", err)
	}
	options, err := s.objectOptions()
	if err != nil {
		return nil, fmt.Errorf("read storage.s3: %w", err)
	}
	return &base.Base{StorageDriver: &storage{settings: s, client: client, options: options}}, nil
}

// storage is the driver. base.Base checks paths before it calls the driver.
type storage struct {
	settings
	client  *minio.Core
	options minio.PutObjectOptions // options for each new object
}

// objectOptions returns the options for creating objects.
func (s *settings) objectOptions() (minio.PutObjectOptions, error) {
	// Request bodies are in memory, so each request contains its body's checksum, and the client
	// does not sign the body in chunks. See sum.
	options := minio.PutObjectOptions{ContentType: "application/octet-stream", DisableContentSha256: true}
	if s.storageClass != noStorageClass {
		options.StorageClass = s.storageClass
	}
	// private is the default. It is also the only ACL that a bucket with disabled ACLs accepts.
	if s.acl != "private" {
		options.UserMetadata = map[string]string{"x-amz-acl": s.acl}
	}
	var err error
	switch {
	case s.encrypt && s.keyID != "":
		options.ServerSideEncryption, err = encrypt.NewSSEKMS(s.keyID, nil)
	case s.encrypt:
		options.ServerSideEncryption = encrypt.NewSSE()
	}
	return options, err
}

// Name returns the driver's name for errors and metrics.
func (*storage) Name() string { return "s3" }

// key returns the name of a file's object. For a directory, it returns the prefix of its objects'
// names, without the slash.
func (s *storage) key(file string) string {
	return strings.Trim(strings.TrimRight(s.root, "/")+file, "/")
}

// file returns the path of the file that an object stores.
func (s *storage) file(key string) string {
	return "/" + strings.Trim(strings.TrimPrefix(key, s.prefix("/")), "/")
}

// prefix returns the name prefix of all objects in a directory.
func (s *storage) prefix(dir string) string {
	if key := s.key(dir); key != "" {
		return key + "/"
	}
	return ""
}

// GetContent reads a small file.
func (s *storage) GetContent(ctx context.Context, file string) ([]byte, error) {
	content, err := s.Reader(ctx, file, 0)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(content)
}

// PutContent writes a small file.
func (s *storage) PutContent(ctx context.Context, file string, content []byte) error {
	_, err := s.client.PutObject(ctx, s.bucket, s.key(file), bytes.NewReader(content), int64(len(content)), "", sum(content), s.options)
	return explain(file, err)
}

// Reader returns a reader that reads a file from offset. The reader is empty if offset is at or
// beyond the end of the file.
func (s *storage) Reader(ctx context.Context, file string, offset int64) (io.ReadCloser, error) {
	options := minio.GetObjectOptions{}
	if offset > 0 {
		if err := options.SetRange(offset, 0); err != nil {
			return nil, err
		}
	}
	content, _, _, err := s.client.GetObject(ctx, s.bucket, s.key(file), options)
	if code(err) == minio.InvalidRange {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	return content, explain(file, err)
}

// Stat returns information about a file or directory.
func (s *storage) Stat(ctx context.Context, path string) (driver.FileInfo, error) {
	directory := driver.FileInfoInternal{FileInfoFields: driver.FileInfoFields{Path: path, IsDir: true}}
	if path != "/" {
		object, err := s.client.StatObject(ctx, s.bucket, s.key(path), minio.StatObjectOptions{})
		if err == nil {
			return driver.FileInfoInternal{FileInfoFields: driver.FileInfoFields{Path: path, Size: object.Size, ModTime: object.LastModified}}, nil
		}
		if err := explain(path, err); !missing(err) {
			return nil, err
		}
	}
	for _, err := range s.objects(ctx, minio.ListObjectsOptions{Prefix: s.prefix(path), Recursive: true, MaxKeys: 1}) {
		if err != nil {
			return nil, err
		}
		return directory, nil
	}
	if path == "/" {
		return directory, nil
	}
	return nil, driver.PathNotFoundError{Path: path}
}

// redirectPeriod is how long a URL returned by RedirectURL is valid.
const redirectPeriod = 20 * time.Minute

// RedirectURL returns a signed URL from which the client can read the file. It returns "" for
// requests that do not read.
func (s *storage) RedirectURL(r *http.Request, file string) (string, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return "", nil
	}
	target, err := s.client.Presign(r.Context(), r.Method, s.bucket, s.key(file), redirectPeriod, nil)
	if err == nil && s.redirect != "" {
		target, err = s.resign(r.Method, target)
	}
	if err != nil {
		return "", fmt.Errorf("sign URL of %q: %w", file, err)
	}
	return target.String(), nil
}

// resign changes the host in a signed URL to redirectendpoint, and signs the URL again.
func (s *storage) resign(method string, target *url.URL) (*url.URL, error) {
	to, err := url.Parse(s.redirect)
	if err != nil {
		return nil, err
	}
	to.Path, to.RawPath = target.Path, target.RawPath
	access, err := s.client.GetCreds()
	if err != nil {
		return nil, err
	}
	request, period := http.Request{Method: method, URL: to, Host: to.Host, Header: http.Header{}}, int64(redirectPeriod/time.Second)
	if s.v4 {
		return signer.PreSignV4(request, access.AccessKeyID, access.SecretAccessKey, access.SessionToken, s.signingRegion(), period).URL, nil
	}
	return signer.PreSignV2(request, access.AccessKeyID, access.SecretAccessKey, period, s.lookup() == minio.BucketLookupDNS).URL, nil
}

// sum returns the checksum of a request's body, which is part of the signature. Without the
// checksum, the client signs the body in chunks, which fewer servers accept.
func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}
