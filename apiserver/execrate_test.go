package apiserver

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/internal/ratelimit"
)

func TestRateOfTenantIsLimited(t *testing.T) {
	const burst = 3
	r := &rates{limiters: ratelimit.Limiters[string]{Rate: 1e-9, Burst: burst}, timeout: execTimeout}
	for range burst {
		if err := r.wait(t.Context(), "mallory"); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.wait(t.Context(), "mallory"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("one more event: %v", err)
	}
	if err := r.wait(t.Context(), "alice"); err != nil {
		t.Errorf("an event of another tenant: %v", err)
	}
	r.limiters.Rate = 1e9
	ctx, cancel := context.WithCancel(t.Context())
	for range burst + 1 {
		if err := r.wait(ctx, "bob"); err != nil {
			t.Errorf("an event after a short delay: %v", err)
		}
	}
	cancel()
	for r.limiters.At("bob", time.Now()).Tokens() < burst {
		continue // at 1e9 tokens per second, each token takes a nanosecond
	}
	before := r.limiters.Len() // carol's limiter replaces bob's, which is full
	if err := r.wait(t.Context(), "carol"); err != nil || r.limiters.Len() != before {
		t.Errorf("error %v, %d limiters, want %d", err, r.limiters.Len(), before)
	}
}
