package nodeprocess

import (
	"context"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/storage/csi"
	"github.com/slipway-platform/slipway/storage/csi/capacity"
	"github.com/slipway-platform/slipway/storage/csi/provision"
	"github.com/slipway-platform/slipway/storage/local"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// localStorage returns the component that provides volumes on the node's own disk.
func (h *Host) localStorage() (component.Component, error) {
	settings := h.Node.Slipway.LocalStorage
	client, err := pki.ReadKubeconfig(h.Credentials.StorageKubeconfig)
	if err != nil {
		return nil, err
	}
	bytes, share, err := settings.Reserved()
	if err != nil {
		return nil, err
	}
	kubelet, err := pki.NewClient(h.Credentials.NodeKubeconfig)
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(h.Node.VolumeDirectory, "plugins", local.DriverName, "csi.sock")
	storage := &local.Driver{
		Node: h.Node.NodeName, Dir: settings.Directory, Socket: socket,
		Reserve:    local.Reserve{Bytes: bytes, Fraction: share},
		Overcommit: float64(settings.OvercommitPercent) / 100,
	}
	label := node.Label{Client: kubelet, Node: h.Node.NodeName, Name: host.LocalStorageLabel}
	if settings.Disabled {
		return &node.Unlabeled{Component: storage.Name(), Label: label}, nil
	}
	caches := &local.CacheCollector{Driver: storage, Client: kubelet}
	embedded := csi.Embedded{
		Driver: storage, Socket: socket, KubeletDir: h.Node.VolumeDirectory,
		Controller: localController(client, socket, h.Node.NodeName),
		Others: []func(context.Context) error{
			func(ctx context.Context) error { label.Set(ctx); return nil },
			func(ctx context.Context) error { return caches.Run(ctx, func() {}) },
		},
	}
	// The component is optional, because it can fail temporarily, for example if its disk is not
	// mounted yet.
	return &component.Optional{Component: storage.Name(), ReadyFirst: true, Serve: func(ctx context.Context, ready func(), _ func(string)) error {
		err := embedded.Run(ctx, ready)
		if ctx.Err() == nil {
			limited, cancel := context.WithTimeout(ctx, removeLabelTimeout)
			defer cancel()
			label.Remove(limited)
		}
		return err
	}}, nil
}

// localController returns the CSI controller for one node's volumes.
func localController(client *rest.Config, socket, nodeName string) *csi.Controller {
	return &csi.Controller{
		Config: client, Drivers: []string{socket}, Node: nodeName,
		Features: csi.Features(csi.Options{
			Capacity: capacity.Options{Namespace: host.CapacityNamespace},
			// Calls to a driver in this process are cheap, so the controller retries them often.
			Provision: provision.Options{RetryMax: 15 * time.Second},
		}),
		Object: local.Spec(),
	}
}

// removeLabelTimeout is the timeout for the removal of the label after local storage has failed.
const removeLabelTimeout = 10 * time.Second
