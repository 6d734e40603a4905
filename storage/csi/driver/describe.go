package driver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/connectivity"
)

// Description is a driver's description of itself.
type Description struct {
	// Name and Version are from GetPluginInfo.
	Name, Version string
	// Plugin and Expansion are from GetPluginCapabilities. They are sorted.
	Plugin    []csi.PluginCapability_Service_Type
	Expansion []csi.PluginCapability_VolumeExpansion_Type
	// Controller lists the capabilities from ControllerGetCapabilities, in sorted order. It is
	// empty for a driver without a controller service.
	Controller []csi.ControllerServiceCapability_RPC_Type
}

// HasService reports whether the driver provides a service.
func (d *Description) HasService(service csi.PluginCapability_Service_Type) bool {
	return slices.Contains(d.Plugin, service)
}

// Can reports whether the controller service has a capability.
func (d *Description) Can(rpc csi.ControllerServiceCapability_RPC_Type) bool {
	return slices.Contains(d.Controller, rpc)
}

// driverName is the driver's name, for metrics and errors.
type driverName struct{ value atomic.Pointer[string] }

func (n *driverName) set(name string) { n.value.Store(&name) }

func (n *driverName) get() string {
	if name := n.value.Load(); name != nil {
		return *name
	}
	return ""
}

// WaitReady waits until the driver responds and is ready, and returns its description. It retries
// on errors from the driver, and logs an error only if it differs from the previous error. It
// returns an error only if ctx is done.
func (d *Driver) WaitReady(ctx context.Context) (*Description, error) {
	lastError := ""
	for delay := d.options.Retry / 10; ; delay = min(2*delay, d.options.Retry) {
		description, err := d.Describe(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			return description, nil
		}
		if err.Error() != lastError {
			lastError = err.Error()
			slog.Warn("cannot connect to CSI driver", "endpoint", d.Address, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(delay):
		}
	}
}

// Describe queries the driver's readiness and description once, without retries.
func (d *Driver) Describe(ctx context.Context) (*Description, error) {
	ready, err := d.Identity().Probe(ctx, &csi.ProbeRequest{})
	if err != nil {
		return nil, err
	}
	if ready.GetReady() != nil && !ready.GetReady().GetValue() {
		return nil, fmt.Errorf("probe CSI driver at %q: it is not ready yet", d.Address)
	}
	info, err := d.Identity().GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	if err != nil {
		return nil, err
	}
	if err := CheckName(info.GetName()); err != nil {
		return nil, err
	}
	d.name.set(info.GetName())
	result := &Description{Name: info.GetName(), Version: info.GetVendorVersion()}
	if err := d.plugin(ctx, result); err != nil {
		return nil, err
	}
	if !result.HasService(csi.PluginCapability_Service_CONTROLLER_SERVICE) {
		return result, nil
	}
	return result, d.controller(ctx, result)
}

func (d *Driver) plugin(ctx context.Context, result *Description) error {
	resp, err := d.Identity().GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{})
	if err != nil {
		return err
	}
	for _, capability := range resp.GetCapabilities() {
		if service := capability.GetService(); service != nil {
			result.Plugin = append(result.Plugin, service.GetType())
		}
		if expansion := capability.GetVolumeExpansion(); expansion != nil {
			result.Expansion = append(result.Expansion, expansion.GetType())
		}
	}
	result.Plugin, result.Expansion = sortUnique(result.Plugin), sortUnique(result.Expansion)
	return nil
}

func (d *Driver) controller(ctx context.Context, result *Description) error {
	resp, err := d.Controller().ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	if err != nil {
		return err
	}
	for _, capability := range resp.GetCapabilities() {
		if rpc := capability.GetRpc(); rpc != nil {
			result.Controller = append(result.Controller, rpc.GetType())
		}
	}
	result.Controller = sortUnique(result.Controller)
	return nil
}

func sortUnique[T cmp.Ordered](values []T) []T {
	slices.Sort(values)
	return slices.Compact(values)
}

// WaitChanged waits until the driver's description differs from previous, for example because the
// driver was upgraded, or until ctx is done. It checks the description after each reconnection.
func (d *Driver) WaitChanged(ctx context.Context, previous *Description) {
	for {
		state := d.connection.GetState()
		if state == connectivity.Idle {
			d.connection.Connect()
		}
		if !d.connection.WaitForStateChange(ctx, state) {
			return
		}
		if d.connection.GetState() != connectivity.Ready {
			continue
		}
		current, err := d.WaitReady(ctx)
		if err != nil || !reflect.DeepEqual(current, previous) {
			return
		}
	}
}
