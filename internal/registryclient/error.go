package registryclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/slipway-platform/slipway/internal/jsonlimit"
	"github.com/slipway-platform/slipway/internal/outbound"
)

// Error reports why a registry could not be read. It contains no text from a response's body or
// headers: users see the error, and the user who specified the registry might not be allowed to see
// its content.
type Error struct {
	// Status is the HTTP status code, or 0 if no response was received.
	Status int
	reason string
	cause  error // does not come from the registry; can be nil
}

// Error returns the reason.
func (e *Error) Error() string { return e.reason }

// Unwrap returns the cause, provided that it does not come from the registry.
func (e *Error) Unwrap() error { return e.cause }

// ours marks an error whose text comes from this program rather than from the registry.
type ours struct{ error }

// Unwrap returns the error itself.
func (o ours) Unwrap() error { return o.error }

// codes contains error codes from the OCI distribution specification and from distribution. They
// are safe to show.
var codes = []transport.ErrorCode{
	transport.BlobUnknownErrorCode, transport.DigestInvalidErrorCode, transport.ManifestBlobUnknownErrorCode, transport.ManifestInvalidErrorCode,
	transport.ManifestUnknownErrorCode, transport.NameInvalidErrorCode, transport.NameUnknownErrorCode, transport.TagInvalidErrorCode,
	transport.UnauthorizedErrorCode, transport.DeniedErrorCode, transport.UnsupportedErrorCode, transport.TooManyRequestsErrorCode,
}

// explain converts an error from reading a registry to an Error.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var (
		response   *transport.Error
		rejection  *outbound.Refused
		values     *jsonlimit.Error
		own        ours
		name       *net.DNSError
		unknown    x509.UnknownAuthorityError
		other      x509.HostnameError
		invalid    x509.CertificateInvalidError
		handshake  *tls.CertificateVerificationError
		plain      tls.RecordHeaderError
		connection *net.OpError
	)
	switch {
	case errors.As(err, &rejection):
		return &Error{reason: rejection.Error(), cause: rejection}
	case errors.As(err, &own):
		return &Error{reason: own.Error(), cause: own.error}
	case errors.As(err, &values):
		return &Error{reason: "the registry's response was not read: " + values.Error(), cause: values}
	case errors.As(err, &response):
		return &Error{Status: response.StatusCode, reason: "the registry responds with " + describe(response)}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{reason: "the registry does not respond in time", cause: context.DeadlineExceeded}
	case errors.Is(err, context.Canceled):
		return &Error{reason: "the request was canceled", cause: context.Canceled}
	case errors.As(err, &name):
		return &Error{reason: "the name of the registry cannot be resolved"}
	case errors.As(err, &unknown), errors.As(err, &other), errors.As(err, &invalid), errors.As(err, &handshake):
		return &Error{reason: "the certificate of the registry is not trusted; mark the import as insecure to accept it"}
	case errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch):
		return &Error{reason: "the registry does not support TLS; mark the import as insecure to connect without TLS"}
	case errors.As(err, &connection):
		return &Error{reason: "the registry cannot be reached"}
	}
	return &Error{reason: "the registry's response violates the OCI distribution specification or does not match its digest"}
}

// describe returns the HTTP status and the error codes in a response. It omits error codes that the
// specification does not define.
func describe(response *transport.Error) string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode)))
	for _, e := range response.Errors {
		if slices.Contains(codes, e.Code) {
			return text + " (" + string(e.Code) + ")"
		}
	}
	return text
}

// Status returns the HTTP status code of an error, or 0.
func Status(err error) int {
	var explained *Error
	if errors.As(err, &explained) {
		return explained.Status
	}
	var response *transport.Error
	if errors.As(err, &response) {
		return response.StatusCode
	}
	return 0
}
