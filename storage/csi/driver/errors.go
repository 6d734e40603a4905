package driver

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error is the error of a call. Values of secrets that were part of the request are not in it.
type Error struct {
	// Driver is the name of the driver, or the path of its socket before the name is known.
	Driver string
	// Method is the name of the method, such as "CreateVolume".
	Method string
	// Code and Message are the driver's answer, or what became of the connection.
	Code    codes.Code
	Message string
}

// Error names the call and what the driver said.
func (e *Error) Error() string {
	return fmt.Sprintf("call %s of CSI driver %q: %s: %s", e.Method, e.Driver, e.Code, e.Message)
}

// GRPCStatus lets package status read the code.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Code, e.Message) }

// CodeOf is the code of a call's error; OK for nil, Unknown for an error of something else.
func CodeOf(err error) codes.Code {
	var e *Error
	switch {
	case err == nil:
		return codes.OK
	case errors.As(err, &e):
		return e.Code
	default:
		return codes.Unknown
	}
}

// Final tells whether a call that failed has surely ended without effect, so that it need not be repeated to learn its outcome. It has not when time ran
// out, the connection broke, or the driver still works on an earlier call (specification of CSI, "Error Scheme": ABORTED, and the codes that the
// transport itself makes). An error that comes from no call is final: nothing was asked of the driver.
func Final(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	switch CodeOf(err) {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted:
		return false
	default:
		return true
	}
}

// Certain tells whether a final error names a reason for which a driver that follows the specification has done nothing. The other codes, such as
// INTERNAL, may come from a driver that failed half way; RESOURCE_EXHAUSTED may pass by itself.
func Certain(err error) bool {
	switch CodeOf(err) {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.OutOfRange, codes.FailedPrecondition,
		codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated:
		return true
	default:
		return false
	}
}

// Called tells whether an error is the outcome of a call of the driver.
func Called(err error) bool {
	var e *Error
	return errors.As(err, &e)
}
