package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/node/containerd"
)

// RegistryAddress tracks the address of the cluster's image registry, and configures containerd
// accordingly. If there are several masters, another master can run the registry after a failure.
type RegistryAddress struct {
	// Watch calls changed with each new list of the registry's host:port addresses until ctx is
	// done. Watch can be nil unless Run is called.
	Watch func(ctx context.Context, changed func([]string))
	// File is the path of the file that contains the last known address. The file does not exist if
	// this address is First.
	File string
	// First is the address at which the host first looks for the registry.
	First string
	// Hosts contains containerd's registry settings, except for the address.
	Hosts containerd.RegistryHosts

	current string
}

// Name returns the component's name.
func (*RegistryAddress) Name() string { return "registry-address" }

// Run tracks the address until ctx is done. It is ready immediately: until the first update, the
// host pulls from the last known address.
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

// follow switches to the first of the registry's addresses. If the list is empty because the
// registry is temporarily unavailable, follow keeps the current address.
func (r *RegistryAddress) follow(addresses []string) error {
	if len(addresses) == 0 || addresses[0] == r.current {
		return nil
	}
	if err := r.use(addresses[0]); err != nil {
		return err
	}
	if r.current != "" {
		slog.Info("the registry's address has changed", "address", addresses[0], "before", r.current)
	}
	r.current = addresses[0]
	return nil
}

// use makes this host pull from the registry at the given address, even after a restart.
func (r *RegistryAddress) use(address string) (err error) {
	if address != r.First {
		err = atomicfile.Write(r.File, []byte(address), 0o600)
	} else if err = os.Remove(r.File); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("record registry address: %w", err)
	}
	return r.Configure()
}

// Last returns the registry's last known address.
func (r *RegistryAddress) Last() (string, error) {
	last, err := os.ReadFile(r.File)
	if errors.Is(err, fs.ErrNotExist) {
		return r.First, nil
	}
	if err != nil {
		return "", fmt.Errorf("read registry address: %w", err)
	}
	return strings.TrimSpace(string(last)), nil
}

// Configure configures containerd to use the registry at its last known address.
func (r *RegistryAddress) Configure() (err error) {
	hosts := r.Hosts
	if hosts.Address, err = r.Last(); err != nil {
		return err
	}
	return hosts.Write()
}
