package engine

import (
	"context"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/plugins/snapshots/native"
	"github.com/containerd/containerd/v2/plugins/snapshots/overlay"
	"github.com/containerd/containerd/v2/plugins/snapshots/overlay/overlayutils"
	"github.com/moby/buildkit/executor/oci"
	"github.com/moby/buildkit/util/network/netproviders"
	"github.com/moby/buildkit/worker/base"
	"github.com/moby/buildkit/worker/runc"
)

// newWorker creates the worker, which runs steps and stores layers. It creates no cgroups: the
// pod's limits apply to all steps.
func newWorker(ctx context.Context, c Config, hosts docker.RegistryHosts) (*base.Worker, error) {
	const rootless = true                     // without cgroups
	network := netproviders.Opt{Mode: "host"} // the network of the pod
	opt, err := runc.NewWorkerOpt(c.Root, snapshotter(c.Root), rootless, oci.ProcessSandbox, nil, nil, network, nil, c.Runc, "", false, nil, "", "", nil)
	if err != nil {
		return nil, err
	}
	for mode, provider := range opt.NetworkProviders { // the executor shares this map
		opt.NetworkProviders[mode] = stepNetwork{provider}
	}
	opt.RegistryHosts = hosts
	return base.NewWorker(ctx, opt)
}

// snapshotter stores layers as overlays if the kernel supports overlayfs, otherwise as copies.
func snapshotter(root string) runc.SnapshotterFactory {
	if overlayutils.Supported(root) != nil {
		return runc.SnapshotterFactory{Name: "native", New: native.NewSnapshotter}
	}
	return runc.SnapshotterFactory{Name: "overlayfs", New: func(root string) (snapshots.Snapshotter, error) {
		return overlay.NewSnapshotter(root, overlay.AsynchronousRemove)
	}}
}
