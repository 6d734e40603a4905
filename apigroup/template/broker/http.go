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

// response is the response to a successful request.
type response struct {
	code int
	body any
}

// refusal is an error with its HTTP status code.
type refusal struct {
	code int
	// kind is the name of the error in the Open Service Broker API, if it has one.
	kind  string
	cause error
}

func (r *refusal) Error() string { return r.cause.Error() }

func (r *refusal) Unwrap() error { return r.cause }

func refuse(code int, format string, values ...any) error {
	return &refusal{code: code, cause: fmt.Errorf(format, values...)}
}

// busy rejects a request that conflicts with another; the platform retries it.
func busy(format string, values ...any) error {
	return &refusal{http.StatusUnprocessableEntity, "ConcurrencyError", fmt.Errorf(format, values...)}
}

// codeOf returns the status code of an error and its name in the Open Service Broker API, if it has
// one. If a conflict persists after retries, another request causes it. If the API server does not
// find or accept an object, the request is invalid.
func codeOf(err error) (code int, kind string) {
	var rejection *refusal
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &rejection):
		return rejection.code, rejection.kind
	case apierrors.IsConflict(err):
		return http.StatusUnprocessableEntity, "ConcurrencyError"
	case apierrors.IsInvalid(err), apierrors.IsNotFound(err):
		return http.StatusBadRequest, ""
	case errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest:
		return int(status.Status().Code), ""
	}
	return http.StatusInternalServerError, ""
}

// apiVersion is the supported version of the Open Service Broker API. olderVersion is the oldest
// minor version that is accepted. Nothing that concerns templates has changed since then.
const (
	apiVersion    = "2.13"
	versionHeader = "X-Broker-API-Version"
	olderVersion  = 7
)

// maxBody limits the size of a request; a Secret has the same limit.
const maxBody = 1 << 20

// serve performs the checks that all requests share, and writes the response.
func serve(w http.ResponseWriter, r *http.Request, handle func(*http.Request) (response, error)) {
	w.Header().Set(versionHeader, apiVersion)
	w.Header().Set("Content-Type", "application/json")
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	err := acceptable(r)
	var resp response
	if err == nil {
		resp, err = handle(r)
	}
	if err != nil {
		code, kind := codeOf(err)
		resp = response{code, problem{Error: kind, Description: err.Error()}}
	}
	w.WriteHeader(resp.code)
	_ = json.NewEncoder(w).Encode(resp.body) // an error means that the client disconnected
}

// acceptable returns an error if the headers of a request are not acceptable.
func acceptable(r *http.Request) error {
	major, minor, _ := strings.Cut(r.Header.Get(versionHeader), ".")
	if number, err := strconv.Atoi(minor); major != "2" || err != nil || number < olderVersion {
		return refuse(http.StatusPreconditionFailed, "header %s is %q, must be 2.%d or a later 2.x",
			versionHeader, r.Header.Get(versionHeader), olderVersion)
	}
	if r.Method != http.MethodPut {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "header Content-Type is %q, must be application/json",
			r.Header.Get("Content-Type"))
	}
	return nil
}

// incomplete returns an error if the platform does not support asynchronous operations.
func incomplete(r *http.Request) error {
	if r.URL.Query().Get("accepts_incomplete") != "true" {
		return &refusal{http.StatusUnprocessableEntity, "AsyncRequired",
			errors.New("this operation is asynchronous: send accepts_incomplete=true, and then request last_operation")}
	}
	return nil
}

// idOf returns the ID of an instance or binding from the path.
func idOf(r *http.Request, of string) (string, error) {
	id := r.PathValue(of)
	if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
		return "", refuse(http.StatusBadRequest, "%s %q is not a UUID in lower case", of, id)
	}
	return id, nil
}

// read decodes the body of a request.
func read(r *http.Request, into any) error {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return refuse(http.StatusBadRequest, "read body: %w", err)
	}
	return nil
}
