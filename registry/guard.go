package registry

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	"k8s.io/apimachinery/pkg/api/resource"
)

// QuotaAnnotation on a namespace is how many bytes its project may have in the registry, such as "100Gi", or "none" for no limit. It takes the place of the
// cluster's quota. Administrators of a project cannot change it.
const QuotaAnnotation = "slipway.openshift.io/registry-quota"

// Unlimited is the quota of projects without a limit.
const Unlimited = -1

// ParseQuota reads a quota such as "50Gi" or "none".
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

// refusal is why something is not stored.
type refusal struct {
	full    bool // the disk, and not the project
	message string
}

func (r *refusal) Error() string { return r.message }

// serve answers a request with the refusal, with a status that clients show and do not repeat.
func (r *refusal) serve(w http.ResponseWriter) {
	if r.full {
		serveFull(w, r.message)
		return
	}
	serveError(w, errcode.ErrorCodeDenied.WithMessage(r.message))
}

// guard refuses what would take more of the storage than the project or the host has.
type guard struct {
	// dir is on the disk of the images. It is empty for storage that is no disk.
	dir     string
	reserve Reserve
	usage   *usage
	// quota returns the most bytes of a project, Unlimited if there is no limit.
	quota func(project string) int64
}

// take reserves bytes for a project. It fails with a refusal if there are not so many.
func (g *guard) take(ctx context.Context, store *store, project string, bytes int64) error {
	if g == nil {
		return nil
	}
	if g.dir != "" {
		if err := g.reserve.check(g.dir); err != nil {
			return err
		}
	}
	return g.usage.take(ctx, store, project, bytes, g.quota(project))
}

// give returns reserved bytes that were not written.
func (g *guard) give(project string, bytes int64) {
	if g != nil {
		g.usage.add(project, -bytes)
	}
}

// entryBytes is what a blob or an upload counts beside its content: its directories and links take blocks and inodes.
const entryBytes = 4 << 10

// meterStep is how many bytes of an upload are reserved at a time.
const meterStep = 64 << 10

// meter is the body of an upload. It fails when the project or the disk has no more bytes.
type meter struct {
	io.Reader
	take     func(bytes int64) error
	reserved int64
	err      error // the refusal
}

// Read reads what is reserved.
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

// upload stores a part of a blob for a project. The size that the client announces is checked before anything is read.
func (s *server) upload(w http.ResponseWriter, r *http.Request, store *store, project string) {
	take := func(bytes int64) error { return s.guard.take(r.Context(), store, project, bytes) }
	announced := max(r.ContentLength, 0) + entryBytes
	err := take(announced)
	if err != nil {
		store.refuse(w, r, err)
		return
	}
	s.guard.give(project, announced-entryBytes) // the body reserves it as it comes
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
	store.upload(w, metered, func() error { return body.err })
}
