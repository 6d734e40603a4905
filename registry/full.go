package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"syscall"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	v2 "github.com/distribution/distribution/v3/registry/api/v2"
	"github.com/google/uuid"
)

// fullMessage is the error message that clients receive if the disk is full.
const fullMessage = "the disk of the registry is full; free space there, for instance with oc adm prune images, and push again"

// upload forwards an upload request to distribution. If the disk is full or failure returns an
// error, it sends the error and removes the upload.
func (s *store) upload(w http.ResponseWriter, r *http.Request, failure func() error) {
	response := &failing{ResponseWriter: named(w, r.URL.Query().Get("digest"))}
	s.Handler.ServeHTTP(response, r)
	if response.status < http.StatusInternalServerError {
		return
	}
	err := failure()
	if err == nil && !full(response.buffered.Bytes()) {
		response.release()
		return
	}
	if err == nil {
		err = &refusal{full: true, message: fullMessage}
	}
	s.rejectUpload(w, r, err)
}

// noLimit is passed to upload if uploads have no size limit.
func noLimit() error { return nil }

// rejectUpload sends an error and, if the request continues an upload, removes the upload.
func (s *store) rejectUpload(w http.ResponseWriter, r *http.Request, err error) {
	t, name := routeOf(r)
	if _, err := uuid.Parse(t.upload); err == nil && t.route == v2.RouteNameBlobUploadChunk {
		_ = s.driver.Delete(context.WithoutCancel(r.Context()), path.Join(repositoriesDir, name, uploadsDir, t.upload))
	}
	w.Header().Set("Connection", "close") // do not read the rest of the body
	serveRefusal(w, err)
}

// serveRefusal sends the reason why content is not stored.
func serveRefusal(w http.ResponseWriter, err error) {
	var refusalErr *refusal
	if errors.As(err, &refusalErr) {
		refusalErr.serve(w)
		return
	}
	serveError(w, errcode.ErrorCodeUnavailable.WithMessage(err.Error()))
}

// full reports whether a response from distribution indicates that the disk or the file system's
// quota is full. Distribution encodes causes as text, or as errors in JSON.
func full(response []byte) bool {
	for _, problem := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if bytes.Contains(response, []byte(problem.Error())) || bytes.Contains(response, fmt.Appendf(nil, `"Err":%d}`, int(problem))) {
			return true
		}
	}
	return false
}

// serveProblem sends the response for a failed write.
func serveProblem(w http.ResponseWriter, err error) {
	if full([]byte(err.Error())) {
		serveFull(w, fullMessage)
		return
	}
	serveError(w, errcode.ErrorCodeUnavailable.WithMessage(err.Error()))
}

// serveFull sends status 507. Clients show the text of this status, unlike the text of other server
// errors.
func serveFull(w http.ResponseWriter, message string) {
	header := w.Header()
	header.Del("Content-Length")
	header.Del("Location")
	header.Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInsufficientStorage)
	_, _ = fmt.Fprintf(w, `{"errors":[{"code":"DENIED","message":%q}]}`+"\n", message)
}

// maxFailure is the maximum size of the buffered part of a response, in bytes.
const maxFailure = 64 << 10

// failing is a response writer that buffers server error responses and forwards all others.
type failing struct {
	http.ResponseWriter
	status   int
	buffered bytes.Buffer
}

// WriteHeader forwards the status unless it is a server error.
func (f *failing) WriteHeader(status int) {
	if f.status = status; status < http.StatusInternalServerError {
		f.ResponseWriter.WriteHeader(status)
	}
}

// Write buffers the body of a server error.
func (f *failing) Write(p []byte) (int, error) {
	if f.status < http.StatusInternalServerError {
		return f.ResponseWriter.Write(p)
	}
	f.buffered.Write(p[:min(len(p), maxFailure-f.buffered.Len())])
	return len(p), nil
}

// Unwrap supports http.ResponseController.
func (f *failing) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f *failing) release() {
	f.ResponseWriter.WriteHeader(f.status)
	_, _ = f.ResponseWriter.Write(f.buffered.Bytes())
}
