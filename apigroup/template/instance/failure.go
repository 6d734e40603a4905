package instance

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// failure is an error that trying again would not change.
type failure struct{ cause error }

func (f *failure) Error() string { return f.cause.Error() }

func (f *failure) Unwrap() error { return f.cause }

// final makes an error a failure.
func final(err error) error { return &failure{err} }

// judged makes an error a failure if it is the server's opinion of what was asked, not of its own state.
func judged(err error) error {
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
