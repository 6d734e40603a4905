package platform

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
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
	kubelet    kubernetes.Interface // with the rights of the node's kubelet
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
		kubelet:    kubelet,
	}
	if settings.Disabled {
		return &disabledLocalStorage{storage}, nil
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

// disabledLocalStorage removes the label of a node whose local storage is disabled.
type disabledLocalStorage struct{ storage *localStorage }

// Name returns the component's name.
func (d *disabledLocalStorage) Name() string { return d.storage.driver.Name() }

// Run removes the label and waits until ctx ends.
func (d *disabledLocalStorage) Run(ctx context.Context, ready func()) error {
	ready()
	d.storage.label(ctx, node.RemoveLabel)
	<-ctx.Done()
	return nil
}

// label changes the label of the node. It retries until ctx ends.
func (l *localStorage) label(
	ctx context.Context, change func(context.Context, kubernetes.Interface, string, string) error,
) {
	lastError := ""
	_ = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := change(ctx, l.kubelet, l.driver.Node, localStorageLabel)
		if err != nil && ctx.Err() == nil && err.Error() != lastError {
			lastError = err.Error()
			slog.Warn("retry to label the node for local storage", "error", err)
		}
		return err == nil, nil
	})
}

// removeLabelTimeout limits the removal of the label after local storage has failed.
const removeLabelTimeout = 10 * time.Second

// serve runs local storage. After a failure, it removes the label of the node.
func (l *localStorage) serve(ctx context.Context, ready func(), _ func(string)) error {
	err := l.run(ctx, ready)
	if ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, removeLabelTimeout)
		defer cancel()
		l.label(limited, node.RemoveLabel)
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
		group.Go(func() { l.label(ctx, node.SetLabel) })
		start(&local.CacheCollector{Driver: &l.driver, Client: l.kubelet}, func() {})
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
