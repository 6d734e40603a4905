package catalogcontroller

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/osb"
	"github.com/slipway-platform/slipway/internal/outbound"
)

// problem is the failure of a step in an operation.
type problem struct {
	// reason and message are used in the condition. If reason is empty, the caller chooses the
	// reason.
	reason, message string
	// terminal means that a retry cannot succeed until the spec changes.
	terminal bool
	// definite means that the broker has created nothing. ambiguous means that the broker might
	// have created something that must be deleted. If neither is set, the broker might have created
	// the requested object and the request can be repeated.
	definite, ambiguous bool
	cause               error
}

func (p *problem) Error() string { return p.message }

func (p *problem) Unwrap() error { return p.cause }

// classify converts an error from a broker call into a problem.
func classify(err error) *problem {
	var known *problem
	if errors.As(err, &known) {
		return known
	}
	p := &problem{message: err.Error(), cause: err}
	var response *osb.Error
	var refused *outbound.Refused
	var operation *net.OpError
	switch {
	case errors.As(err, &response):
		p.terminal, p.definite, p.ambiguous = judge(response)
	case errors.As(err, &refused):
		p.definite = true
	case errors.As(err, &operation) && operation.Op == "dial":
		p.definite = true
	case errors.Is(err, context.Canceled): // the process is shutting down
	default:
		p.ambiguous = true
	}
	return p
}

// judge interprets a broker's error response to a request that creates something.
func judge(response *osb.Error) (terminal, definite, ambiguous bool) {
	switch code := response.StatusCode; {
	case code == http.StatusBadRequest:
		return true, true, false
	case code == http.StatusConflict: // the ID exists with different attributes
		return true, false, false
	case response.Code == osb.ConcurrencyError:
		return false, false, false
	case response.Ambiguous(), code == http.StatusRequestTimeout:
		return false, false, true
	}
	return false, true, false
}
