package platform

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/storage/csi"
	"github.com/slipway-platform/slipway/storage/csi/capacity"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/provision"
	"github.com/slipway-platform/slipway/storage/csi/register"
	"github.com/slipway-platform/slipway/storage/local"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// localStorage serves volumes on the node's own disk: the CSI driver, its registration with the
// kubelet, and its controller.
type localStorage struct {
	driver     local.Driver
	kubeletDir string
	controller csi.Controller
	label      node.Label // with the rights of the node's kubelet
}

func (h *Host) localStorage() (component.Component, error) {
	settings := h.Node.Slipway.LocalStorage
	client, err := readKubeconfig(h.credentials.StorageKubeconfig)
	if err != nil {
		return nil, err
	}
	bytes, share, err := settings.Reserved()
	if err != nil {
		return nil, err
	}
	kubelet, err := clientFor(h.credentials.NodeKubeconfig)
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(h.Node.VolumeDirectory, "plugins", local.DriverName, "csi.sock")
	storage := &localStorage{
		driver: local.Driver{
			Node: h.Node.NodeName, Dir: settings.Directory, Socket: socket,
			Reserve:    local.Reserve{Bytes: bytes, Fraction: share},
			Overcommit: float64(settings.OvercommitPercent) / 100,
		},
		kubeletDir: h.Node.VolumeDirectory,
		controller: localController(client, socket, h.Node.NodeName),
		label:      node.Label{Client: kubelet, Node: h.Node.NodeName, Name: localStorageLabel},
	}
	if settings.Disabled {
		return &node.Unlabeled{Component: storage.driver.Name(), Label: storage.label}, nil
	}
	// It can fail for a while, for instance because its disk is not mounted yet.
	return &component.Optional{Component: storage.driver.Name(), Serve: storage.serve, ReadyFirst: true}, nil
}

// localController returns the controller of the volumes of one node.
func localController(client *rest.Config, socket, nodeName string) csi.Controller {
	return csi.Controller{
		Config: client, Drivers: []string{socket}, Node: nodeName,
		Features: csi.Features(csi.Options{
			Capacity: capacity.Options{Namespace: "openshift-infra"},
			// A call of a driver in this process is cheap.
			Provision: provision.Options{RetryMax: 15 * time.Second},
		}),
		Object: &storagev1.CSIDriverSpec{
			PodInfoOnMount: ptr.To(true), FSGroupPolicy: ptr.To(storagev1.FileFSGroupPolicy),
			VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{
				storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral,
			},
		},
	}
}

// localStorageLabel is the label of nodes with local storage. It stays while the node restarts, so
// that pods wait for the driver. A node whose local storage is disabled or fails loses it.
const localStorageLabel = "slipway.openshift.io/local-storage"

// removeLabelTimeout limits the removal of the label after local storage has failed.
const removeLabelTimeout = 10 * time.Second

// serve runs local storage. After a failure, it removes the label of the node.
func (l *localStorage) serve(ctx context.Context, ready func(), _ func(string)) error {
	err := l.run(ctx, ready)
	if ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, removeLabelTimeout)
		defer cancel()
		l.label.Remove(limited)
	}
	return err
}

// run runs the driver, and the components that use it as soon as it serves.
func (l *localStorage) run(ctx context.Context, ready func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	connection, err := driver.Dial(l.driver.Socket, driver.Options{})
	if err != nil {
		return err
	}
	defer connection.Close()
	registrar := register.Registrar{
		Driver: connection, Endpoint: l.driver.Socket, Dir: filepath.Join(l.kubeletDir, "plugins_registry"),
	}

	var group sync.WaitGroup
	defer group.Wait()
	start := func(c component.Component, ready func()) {
		group.Go(func() {
			if err := c.Run(ctx, ready); err != nil {
				cancel(err)
			}
		})
	}
	start(&l.driver, func() {
		ready()
		start(&registrar, func() {})
		group.Go(func() { l.label.Set(ctx) })
		start(&local.CacheCollector{Driver: &l.driver, Client: l.label.Client}, func() {})
		group.Go(func() {
			// At the first start, the control plane has just created the definitions of snapshots. The
			// controller checks once whether they are served.
			if err := csi.AwaitSnapshots(ctx, l.controller.Config); err == nil {
				start(&l.controller, func() {})
			}
		})
	})
	<-ctx.Done()
	return context.Cause(ctx)
}
