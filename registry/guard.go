package registry

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/slipway-platform/slipway/internal/diskspace"
)

// QuotaAnnotation is a namespace annotation that contains the maximum size of the project's content
// in the registry, such as "100Gi", or "none" for no limit. It overrides the cluster's quota.
// Project administrators cannot change it.
const QuotaAnnotation = "slipway.openshift.io/registry-quota"

// Unlimited is the quota for projects without a limit.
const Unlimited = -1

// ParseQuota parses a quota such as "50Gi" or "none" and returns it in bytes.
func ParseQuota(text string) (int64, error) {
	if text == "none" {
		return Unlimited, nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err == nil && quantity.Sign() < 0 {
		err = errors.New("it is negative")
	}
	return quantity.Value(), err
}

// refusal is the reason why content is not stored.
type refusal struct {
	full    bool // true if the disk is full, false if the project is full
	message string
}

func (r *refusal) Error() string { return r.message }

// serve sends the refusal with a status that clients show and do not retry.
func (r *refusal) serve(w http.ResponseWriter) {
	if r.full {
		serveFull(w, r.message)
		return
	}
	serveError(w, errcode.ErrorCodeDenied.WithMessage(r.message))
}

// guard rejects content that exceeds the project's quota or the free space on the disk.
type guard struct {
	// dir is a directory on the disk that stores images. It is empty if images are not stored on a
	// disk.
	dir     string
	reserve diskspace.Reserve
	usage   *usage
	// quota returns a project's maximum number of bytes, or Unlimited.
	quota func(project string) int64
}

// take reserves bytes for a project. If there is not enough space, the error is a refusal.
func (g *guard) take(ctx context.Context, store *store, project string, bytes int64) error {
	if g == nil {
		return nil
	}
	if g.dir != "" {
		if err := checkSpace(g.dir, g.reserve); err != nil {
			return err
		}
	}
	return g.usage.take(ctx, store, project, bytes, g.quota(project))
}

// give releases reserved bytes that were not written.
func (g *guard) give(project string, bytes int64) {
	if g != nil {
		g.usage.add(project, -bytes)
	}
}

// entryBytes is the estimated overhead of a blob or an upload, in bytes: its directories and links
// use blocks and inodes.
const entryBytes = 4 << 10

// meterStep is the number of bytes that are reserved at a time for an upload.
const meterStep = 64 << 10

// meter is the body of an upload request. Reads fail if the project's quota or the disk is full.
type meter struct {
	io.Reader
	take     func(bytes int64) error
	reserved int64
	err      error // the error if the data was rejected
}

// Read reserves bytes and then reads them.
func (m *meter) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	if m.reserved == 0 {
		if m.err = m.take(meterStep); m.err != nil {
			return 0, m.err
		}
		m.reserved = meterStep
	}
	n, err := m.Reader.Read(p[:min(int64(len(p)), m.reserved)])
	m.reserved -= int64(n)
	return n, err
}

// upload stores one request body of an upload for a project. It checks the size that the client
// announces before it reads the body.
func (s *server) upload(w http.ResponseWriter, r *http.Request, store *store, project string) {
	take := func(bytes int64) error { return s.guard.take(r.Context(), store, project, bytes) }
	announced := max(r.ContentLength, 0) + entryBytes
	err := take(announced)
	if err != nil {
		store.rejectUpload(w, r, err)
		return
	}
	s.guard.give(project, announced-entryBytes) // meter reserves the body as it arrives
	s.uploads.touch(uploadOf(r))
	body := &meter{Reader: r.Body, take: take}
	defer func() {
		s.guard.give(project, body.reserved)
		s.uploads.touch(uploadOf(r))
	}()
	metered := r.Clone(r.Context())
	metered.Form, metered.PostForm = r.Form, r.PostForm
	metered.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	if id := storedBlob(r); id != "" {
		_, repository := routeOf(r)
		response, withdraw := &statusWriter{ResponseWriter: w}, s.promises.make(repository, id)
		defer func() {
			if response.status != http.StatusCreated {
				withdraw()
			}
		}()
		w = response
	}
	store.upload(w, metered, func() error { return body.err })
}

// storedBlob returns the digest of the blob that a request adds to its repository, or "" if the
// request does not add a blob.
func storedBlob(r *http.Request) digest.Digest {
	query := r.URL.Query()
	for _, name := range []string{"digest", "mount"} {
		if id, err := digest.Parse(query.Get(name)); err == nil {
			return id
		}
	}
	return ""
}

// statusWriter is a response writer that records the status of the response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader records and forwards the status.
func (s *statusWriter) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap supports http.ResponseController.
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
