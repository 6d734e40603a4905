package node

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func TestRegistryAddressFollowsTheRegistry(t *testing.T) {
	var used []string
	r := &RegistryAddress{
		Use: func(address string) error { used = append(used, address); return nil },
		Watch: func(_ context.Context, changed func([]string)) {
			for _, list := range [][]string{nil, {"192.0.2.1:5000"}, {"192.0.2.1:5000"}, nil, {"192.0.2.2:5000"}} {
				changed(list)
			}
		},
	}
	if err := r.Run(t.Context(), func() {}); err != nil {
		t.Error(err)
	}
	if want := []string{"192.0.2.1:5000", "192.0.2.2:5000"}; !slices.Equal(used, want) {
		t.Errorf("got %q, want %q", used, want)
	}
}

func TestRegistryAddressEndsWithAnError(t *testing.T) {
	full := errors.New("the disk is full")
	r := &RegistryAddress{
		Use: func(string) error { return full },
		Watch: func(ctx context.Context, changed func([]string)) {
			changed([]string{"192.0.2.1:5000"})
			<-ctx.Done()
		},
	}
	if err := r.Run(t.Context(), func() {}); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}
