package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// response is an answer that is no refusal.
type response struct {
	code int
	body any
}

// refusal is an error that says how it is answered.
type refusal struct {
	code int
	// kind is the error's name in the Open Service Broker API, if it has one.
	kind  string
	cause error
}

func (r *refusal) Error() string { return r.cause.Error() }

func (r *refusal) Unwrap() error { return r.cause }

func refuse(code int, format string, values ...any) error {
	return &refusal{code: code, cause: fmt.Errorf(format, values...)}
}

// busy refuses what another request stands in the way of; the platform tries again.
func busy(format string, values ...any) error {
	return &refusal{http.StatusUnprocessableEntity, "ConcurrencyError", fmt.Errorf(format, values...)}
}

// codeOf finds how an error is answered: by a code and, for some, a name in the Open Service Broker API. A conflict that trying again did not
// solve is another request's doing, and what the API server does not find or accept is what was asked for.
func codeOf(err error) (code int, kind string) {
	var known *refusal
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &known):
		return known.code, known.kind
	case apierrors.IsConflict(err):
		return http.StatusUnprocessableEntity, "ConcurrencyError"
	case apierrors.IsInvalid(err), apierrors.IsNotFound(err):
		return http.StatusBadRequest, ""
	case errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest:
		return int(status.Status().Code), ""
	}
	return http.StatusInternalServerError, ""
}

// apiVersion is the version of the Open Service Broker API; since olderVersion, its minor number, nothing was changed that concerns templates.
const (
	apiVersion    = "2.13"
	versionHeader = "X-Broker-API-Version"
	olderVersion  = 7
)

// maxBody is how large a request may be; a Secret holds not more.
const maxBody = 1 << 20

// serve checks what all requests have in common and writes the answer.
func serve(w http.ResponseWriter, r *http.Request, answer func(*http.Request) (response, error)) {
	w.Header().Set(versionHeader, apiVersion)
	w.Header().Set("Content-Type", "application/json")
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	err := acceptable(r)
	var done response
	if err == nil {
		done, err = answer(r)
	}
	if err != nil {
		code, kind := codeOf(err)
		done = response{code, problem{Error: kind, Description: err.Error()}}
	}
	w.WriteHeader(done.code)
	_ = json.NewEncoder(w).Encode(done.body) // there is nobody else to tell that the client is gone
}

// acceptable checks the headers of a request.
func acceptable(r *http.Request) error {
	major, minor, _ := strings.Cut(r.Header.Get(versionHeader), ".")
	if number, err := strconv.Atoi(minor); major != "2" || err != nil || number < olderVersion {
		return refuse(http.StatusPreconditionFailed, "header %s is %q, and must be 2.%d or a later 2.x", versionHeader, r.Header.Get(versionHeader), olderVersion)
	}
	if r.Method != http.MethodPut {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "header Content-Type is %q, and must be application/json", r.Header.Get("Content-Type"))
	}
	return nil
}

// incomplete checks that a platform waits for what takes time.
func incomplete(r *http.Request) error {
	if r.URL.Query().Get("accepts_incomplete") != "true" {
		return &refusal{http.StatusUnprocessableEntity, "AsyncRequired", errors.New("this takes time: ask with accepts_incomplete=true, and then for last_operation")}
	}
	return nil
}

// identity is the identity of an instance or binding in a path.
func identity(r *http.Request, of string) (string, error) {
	id := r.PathValue(of)
	if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
		return "", refuse(http.StatusBadRequest, "%s %q is no UUID in lower case", of, id)
	}
	return id, nil
}

// read reads the body of a request.
func read(r *http.Request, into any) error {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return refuse(http.StatusBadRequest, "read body: %w", err)
	}
	return nil
}
