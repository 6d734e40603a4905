package image

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/internal/outbound"
)

func TestFailureOfPullNamesReason(t *testing.T) {
	const secret = "10.0.0.7 responded with secret"
	for name, tt := range map[string]struct {
		registry string
		err      error
		code     codes.Code
		reason   string
	}{
		"image of the node":      {"localhost", &outbound.Refused{Host: "localhost"}, codes.NotFound, "slipway images list"},
		"address of the host":    {"10.0.0.7:5000", &outbound.Refused{Host: "10.0.0.7"}, codes.PermissionDenied, "slipway.outbound"},
		"unknown image":          {"registry.example.com", fmt.Errorf("%s: %w", secret, errdefs.ErrNotFound), codes.NotFound, "no such image"},
		"no pull secret":         {"registry.example.com", fmt.Errorf("%s: %w", secret, errdefs.ErrUnauthenticated), codes.PermissionDenied, "pull secret"},
		"timeout":                {"registry.example.com", fmt.Errorf("%s: %w", secret, context.DeadlineExceeded), codes.Unavailable, "does not respond"},
		"full disk":              {"registry.example.com", errors.New("write layer: no space left on device"), codes.ResourceExhausted, "disk"},
		"response of a stranger": {"registry.example.com", errors.New(secret), codes.Unknown, "slipway logs node"},
	} {
		t.Run(name, func(t *testing.T) {
			err := failure(tt.registry, tt.err)
			if status.Code(err) != tt.code || !strings.Contains(err.Error(), tt.reason) || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want %s with %q", err, tt.code, tt.reason)
			}
		})
	}
}
