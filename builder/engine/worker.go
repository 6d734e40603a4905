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

// worker makes what runs steps and keeps layers. It works without a control group of its own: the pod's limits hold for all its steps.
func newWorker(ctx context.Context, c Config, hosts docker.RegistryHosts) (*base.Worker, error) {
	const withoutGroups = true
	network := netproviders.Opt{Mode: "host"} // the pod's
	opt, err := runc.NewWorkerOpt(c.Root, snapshotter(c.Root), withoutGroups, oci.ProcessSandbox, nil, nil, network, nil, c.Runc, "", false, nil, "", "", nil)
	if err != nil {
		return nil, err
	}
	opt.RegistryHosts = hosts
	return base.NewWorker(ctx, opt)
}

// snapshotter keeps layers in overlays where the kernel lets us, else in copies.
func snapshotter(root string) runc.SnapshotterFactory {
	if overlayutils.Supported(root) != nil {
		return runc.SnapshotterFactory{Name: "native", New: native.NewSnapshotter}
	}
	return runc.SnapshotterFactory{Name: "overlayfs", New: func(root string) (snapshots.Snapshotter, error) {
		return overlay.NewSnapshotter(root, overlay.AsynchronousRemove)
	}}
}
