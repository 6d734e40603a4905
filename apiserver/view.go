package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// View returns a handler that responds to GET requests with the result of read, as JSON. read must
// return within the timeout. If read returns an error, the handler responds with the error text.
// The status code is the API error's code or, for any other error, failure.
func View(path string, timeout time.Duration, failure int, read func(context.Context, *http.Request) (any, error)) Handler {
	return Handler{Path: path, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.Error(w, "use GET", http.StatusMethodNotAllowed)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		result, err := read(ctx, r)
		if err != nil {
			code := failure
			if status := apierrors.APIStatus(nil); errors.As(err, &status) {
				code = int(status.Status().Code)
			}
			http.Error(w, err.Error(), code)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(result) // the client might have disconnected
	})}
}
