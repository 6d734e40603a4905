package image

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	remoteerrors "github.com/containerd/containerd/v2/core/remotes/errors"
	"github.com/containerd/errdefs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/internal/outbound"
)

var errInvalidName = errors.New("invalid name")

// failure returns the error that the pod's status contains for a failed pull. It contains the
// registry's name and one of a few reasons. Only the node's log contains the server's response,
// because the pod's author might not be allowed to access the server.
func failure(registry string, err error) error {
	code, reason := codes.Unknown, "the image cannot be pulled; to see the reason, run `slipway logs node` on the node"
	rejection := (*rejection)(nil)
	switch httpStatus := statusOf(err); {
	case errors.As(err, &rejection):
		code, reason = rejection.code, rejection.message
	case errors.Is(err, context.Canceled):
		code, reason = codes.Canceled, "the pull was canceled"
	case errors.Is(err, errInvalidName):
		return status.Error(codes.InvalidArgument, "the name of the image is invalid")
	case isRefused(err) && registry == "localhost":
		return status.Error(codes.NotFound, "this node has no such image; images named localhost/... are created on each node: "+
			"see `slipway images list`, and `slipway logs images` for images of the platform")
	case isRefused(err):
		return status.Error(codes.PermissionDenied, (&outbound.Refused{Host: registry}).Error())
	case errdefs.IsNotFound(err) || httpStatus == http.StatusNotFound:
		code, reason = codes.NotFound, "the registry has no such image; check its name and tag"
	case errdefs.IsUnauthorized(err) || errdefs.IsPermissionDenied(err) || httpStatus == http.StatusUnauthorized || httpStatus == http.StatusForbidden:
		code, reason = codes.PermissionDenied, "the registry denies access; check the pull secret"
	case httpStatus == http.StatusTooManyRequests:
		code, reason = codes.ResourceExhausted, "the registry limits the rate of pulls"
	case isCertificate(err):
		code, reason = codes.FailedPrecondition, "the certificate of the registry is not trusted"
	case strings.Contains(err.Error(), "no space left on device"):
		code, reason = codes.ResourceExhausted, "the image does not fit on the node's disk; remove images or volumes of the node, or use a smaller image"
	case isNetwork(err) || httpStatus != 0:
		code, reason = codes.Unavailable, "the server does not respond as a registry; check the address"
	}
	return status.Error(code, fmt.Sprintf("registry %q: %s", registry, reason))
}

func isRefused(err error) bool {
	rejection := (*outbound.Refused)(nil)
	return errors.As(err, &rejection)
}

// statusOf returns the HTTP status of an unexpected response, or 0.
func statusOf(err error) int {
	if unexpected := (remoteerrors.ErrUnexpectedStatus{}); errors.As(err, &unexpected) {
		return unexpected.StatusCode
	}
	return 0
}

func isCertificate(err error) bool {
	invalid := (*tls.CertificateVerificationError)(nil)
	return errors.As(err, &invalid)
}

func isNetwork(err error) bool {
	network := net.Error(nil)
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded)
}
