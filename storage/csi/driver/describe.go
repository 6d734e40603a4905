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

// Description is what a driver says about itself.
type Description struct {
	// Name and Version are the answer to GetPluginInfo.
	Name, Version string
	// Plugin and Expansion are the answer to GetPluginCapabilities, sorted.
	Plugin    []csi.PluginCapability_Service_Type
	Expansion []csi.PluginCapability_VolumeExpansion_Type
	// Controller is the answer to ControllerGetCapabilities, sorted; none for a driver without that service.
	Controller []csi.ControllerServiceCapability_RPC_Type
}

// Offers tells whether the driver has a service.
func (d *Description) Offers(service csi.PluginCapability_Service_Type) bool {
	return slices.Contains(d.Plugin, service)
}

// Can tells whether the controller service of the driver can do something.
func (d *Description) Can(rpc csi.ControllerServiceCapability_RPC_Type) bool {
	return slices.Contains(d.Controller, rpc)
}

// names holds the name of the driver for metrics and errors once it is known.
type names struct{ known atomic.Pointer[string] }

func (n *names) set(name string) { n.known.Store(&name) }

func (n *names) get() string {
	if name := n.known.Load(); name != nil {
		return *name
	}
	return ""
}

// Await waits until the driver answers, is ready, and has said what it can do. Its only error is the end of ctx: what is wrong with the driver is
// logged, when it changes, and tried again.
func (d *Driver) Await(ctx context.Context) (*Description, error) {
	last := ""
	for wait := d.options.Retry / 10; ; wait = min(2*wait, d.options.Retry) {
		description, err := d.Describe(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			return description, nil
		}
		if err.Error() != last {
			last = err.Error()
			slog.Warn("wait for CSI driver", "address", d.Address, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// Describe asks the driver once whether it is ready and what it can do.
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
	if !result.Offers(csi.PluginCapability_Service_CONTROLLER_SERVICE) {
		return result, nil
	}
	return result, d.controller(ctx, result)
}

func (d *Driver) plugin(ctx context.Context, result *Description) error {
	answer, err := d.Identity().GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{})
	if err != nil {
		return err
	}
	for _, capability := range answer.GetCapabilities() {
		if service := capability.GetService(); service != nil {
			result.Plugin = append(result.Plugin, service.GetType())
		}
		if expansion := capability.GetVolumeExpansion(); expansion != nil {
			result.Expansion = append(result.Expansion, expansion.GetType())
		}
	}
	result.Plugin, result.Expansion = sorted(result.Plugin), sorted(result.Expansion)
	return nil
}

func (d *Driver) controller(ctx context.Context, result *Description) error {
	answer, err := d.Controller().ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	if err != nil {
		return err
	}
	for _, capability := range answer.GetCapabilities() {
		if rpc := capability.GetRpc(); rpc != nil {
			result.Controller = append(result.Controller, rpc.GetType())
		}
	}
	result.Controller = sorted(result.Controller)
	return nil
}

func sorted[T cmp.Ordered](values []T) []T {
	slices.Sort(values)
	return slices.Compact(values)
}

// Changed waits until the driver has been restarted and describes itself in another way, such as after an upgrade, or until ctx ends.
func (d *Driver) Changed(ctx context.Context, known *Description) {
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
		now, err := d.Await(ctx)
		if err != nil || !reflect.DeepEqual(now, known) {
			return
		}
	}
}
