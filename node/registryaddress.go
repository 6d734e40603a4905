package node

import (
	"context"
	"log/slog"
)

// RegistryAddress is the component that follows the address of the cluster's image registry. With
// several masters, another one can run the registry after a failure.
type RegistryAddress struct {
	// Watch calls its argument with each new list of host:port addresses of the registry until ctx
	// ends.
	Watch func(ctx context.Context, changed func([]string))
	// Use makes the host pull from the registry at an address.
	Use func(address string) error

	current string
}

// Name returns the component's name.
func (*RegistryAddress) Name() string { return "registry-address" }

// Run follows the address until ctx ends. It is ready immediately: the host pulls from the last
// known address until then.
func (r *RegistryAddress) Run(ctx context.Context, ready func()) error {
	ready()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.Watch(ctx, func(addresses []string) {
		if err := r.follow(addresses); err != nil {
			cancel(err)
		}
	})
	if err := context.Cause(ctx); err != ctx.Err() {
		return err
	}
	return nil
}

// follow uses the first of the registry's addresses. A registry that is away for a moment keeps its
// address.
func (r *RegistryAddress) follow(addresses []string) error {
	if len(addresses) == 0 || addresses[0] == r.current {
		return nil
	}
	if err := r.Use(addresses[0]); err != nil {
		return err
	}
	if r.current != "" {
		slog.Info("registry has another address", "address", addresses[0], "before", r.current)
	}
	r.current = addresses[0]
	return nil
}
