package apiserver

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestRateOfTenantIsLimited(t *testing.T) {
	const burst = 3
	r := &rates{perSecond: 1e-9, burst: burst, timeout: execTimeout}
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
	r.perSecond = 1e9
	ctx, cancel := context.WithCancel(t.Context())
	for range burst + 1 {
		if err := r.wait(ctx, "bob"); err != nil {
			t.Errorf("an event after a short delay: %v", err)
		}
	}
	cancel()
	for r.of("bob").Tokens() < burst {
		continue // a billionth of a second
	}
	if err := r.wait(t.Context(), "carol"); err != nil || r.limiters["bob"] != nil || r.limiters["mallory"] == nil {
		t.Errorf("error %v, limiters %v remain", err, r.limiters)
	}
}
