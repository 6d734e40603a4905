// Package osbserver contains code that the built-in brokers share as servers of the Open Service
// Broker API: request checks, errors, and the originator of a request. The caller serves the paths.
//
// Source: Open Service Broker API, version 2.13.
package osbserver

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

// Response is the response to a successful request.
type Response struct {
	// Code is the HTTP status code. Body is the value that is sent as JSON.
	Code int
	Body any
	// RetryAfter is the delay before the next poll, in seconds, or 0 for the platform's default.
	RetryAfter int
}

// rejection is an error with its HTTP status code.
type rejection struct {
	code int
	// kind is the error's name in the Open Service Broker API, if it has one.
	kind  string
	cause error
}

// Error describes the cause.
func (r *rejection) Error() string { return r.cause.Error() }

// Unwrap returns the cause.
func (r *rejection) Unwrap() error { return r.cause }

// Refuse returns an error with its HTTP status code.
func Refuse(code int, format string, values ...any) error {
	return &rejection{code: code, cause: fmt.Errorf(format, values...)}
}

// Busy returns the error for a request that conflicts with another request. The platform then
// retries its request.
func Busy(format string, values ...any) error {
	return &rejection{http.StatusUnprocessableEntity, "ConcurrencyError", fmt.Errorf(format, values...)}
}

// Code returns an error's status code and its name in the Open Service Broker API, if it has one.
// For a conflict that persists after retries, it returns ConcurrencyError, because another request
// is the cause. If the API server does not find or accept an object, the code means that the
// request is invalid.
func Code(err error) (code int, kind string) {
	var rejection *rejection
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

// APIVersion is the supported version of the Open Service Broker API, and VersionHeader is the
// request and response header that contains a version. olderVersion is the oldest accepted minor
// version. It is accepted because nothing that the brokers need has changed since that version.
const (
	APIVersion    = "2.13"
	VersionHeader = "X-Broker-API-Version"
	olderVersion  = 7
)

// MaxBodyBytes is the maximum size of a request body, in bytes. It is the same as the size limit on
// Secrets.
const MaxBodyBytes = 1 << 20

// Serve performs the checks that all requests require, calls handle, and writes the response.
func Serve(w http.ResponseWriter, r *http.Request, handle func(*http.Request) (Response, error)) {
	r.Body = http.MaxBytesReader(w, r.Body, MaxBodyBytes)
	err := checkHeaders(r)
	var resp Response
	if err == nil {
		resp, err = handle(r)
	}
	respond(w, resp, err)
}

// respond writes the response to a request, or the error if there is one.
func respond(w http.ResponseWriter, resp Response, err error) {
	w.Header().Set(VersionHeader, APIVersion)
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		code, kind := Code(err)
		resp = Response{Code: code, Body: problem{Error: kind, Description: err.Error()}}
	}
	if resp.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(resp.RetryAfter))
	}
	w.WriteHeader(resp.Code)
	_ = json.NewEncoder(w).Encode(resp.Body) // an error means that the client disconnected
}

// checkHeaders returns an error if a request uses an unsupported version of the API, or if its body
// is not JSON.
func checkHeaders(r *http.Request) error {
	major, minor, _ := strings.Cut(r.Header.Get(VersionHeader), ".")
	if number, err := strconv.Atoi(minor); major != "2" || err != nil || number < olderVersion {
		return Refuse(http.StatusPreconditionFailed, "header %s is %q, must be 2.%d or a later 2.x",
			VersionHeader, r.Header.Get(VersionHeader), olderVersion)
	}
	if r.Method != http.MethodPut {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return Refuse(http.StatusUnsupportedMediaType, "header Content-Type is %q, must be application/json",
			r.Header.Get("Content-Type"))
	}
	return nil
}

// Incomplete returns an error if the platform does not support asynchronous operations.
func Incomplete(r *http.Request) error {
	if r.URL.Query().Get("accepts_incomplete") != "true" {
		return &rejection{http.StatusUnprocessableEntity, "AsyncRequired",
			errors.New("this operation is asynchronous; send accepts_incomplete=true, and then request last_operation")}
	}
	return nil
}

// ID returns an instance or binding ID from the path.
func ID(r *http.Request, of string) (string, error) {
	id := r.PathValue(of)
	if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
		return "", Refuse(http.StatusBadRequest, "%s %q is not a UUID in lower case", of, id)
	}
	return id, nil
}

// Read decodes a request's body.
func Read(r *http.Request, into any) error {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return Refuse(http.StatusBadRequest, "read body: %w", err)
	}
	return nil
}

// problem is the body of an error response.
type problem struct {
	Error       string `json:"error,omitempty"`
	Description string `json:"description"`
}

// Empty is the body of a response without content.
type Empty struct{}
