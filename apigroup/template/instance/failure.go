package instance

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// failure is a permanent error: retries would not succeed.
type failure struct{ cause error }

func (f *failure) Error() string { return f.cause.Error() }

func (f *failure) Unwrap() error { return f.cause }

// final converts an error to a failure.
func final(err error) error { return &failure{err} }

// classify converts an error to a failure if the error was caused by the request and not by the
// server's state.
func classify(err error) error {
	if meta.IsNoMatchError(err) {
		return final(err)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	switch code := int(status.Status().Code); {
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || apierrors.IsConflict(err):
		return err
	case code >= http.StatusBadRequest && code < http.StatusInternalServerError:
		return final(err)
	}
	return err
}
