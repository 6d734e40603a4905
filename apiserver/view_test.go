package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestViewRespondsWithResult(t *testing.T) {
	for _, tt := range []struct {
		name, method string
		err          error
		code         int
		body         string
	}{
		{"result", http.MethodGet, nil, http.StatusOK, `{"path":"/view"}`},
		{"error", http.MethodGet, errors.New("no members"), http.StatusServiceUnavailable, "no members"},
		{"API error", http.MethodGet, fmt.Errorf("read: %w", apierrors.NewBadRequest("no number")), http.StatusBadRequest, "read: no number"},
		{"another method", http.MethodPost, nil, http.StatusMethodNotAllowed, "use GET"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			view := View("/view", time.Minute, http.StatusServiceUnavailable, func(ctx context.Context, r *http.Request) (any, error) {
				if _, limited := ctx.Deadline(); !limited {
					t.Error("the response has no timeout")
				}
				return map[string]string{"path": r.URL.Path}, tt.err
			})
			response := httptest.NewRecorder()
			view.ServeHTTP(response, httptest.NewRequest(tt.method, view.Path, nil))
			if body := strings.TrimSpace(response.Body.String()); response.Code != tt.code || body != tt.body {
				t.Errorf("got %d %q, want %d %q", response.Code, body, tt.code, tt.body)
			}
		})
	}
}
