package platform

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/bootstrap"
	"github.com/slipway-platform/slipway/storage/csi"
	"github.com/slipway-platform/slipway/storage/csi/capacity"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/provision"
	"github.com/slipway-platform/slipway/storage/csi/register"
	"github.com/slipway-platform/slipway/storage/local"
)

// localStorage is the part that serves the volumes of the node's own disk: the driver, its registration with kubelet, and what makes
// PersistentVolumes of it. The node does without it when it fails, and it is tried again.
type localStorage struct {
	driver     local.Driver
	kubelet    string // kubelet's directory
	disabled   bool
	controller csi.Controller
	pods       kubernetes.Interface // with the rights of the node's kubelet
}

func (h *host) localStorage() (Component, error) {
	settings := h.Node.Slipway.LocalStorage
	client, err := kubeconfig(h.identity.StorageKubeconfig)
	if err != nil {
		return nil, err
	}
	bytes, share, err := settings.Reserved()
	if err != nil {
		return nil, err
	}
	kubelet, err := kubeconfig(h.identity.NodeKubeconfig)
	if err != nil {
		return nil, err
	}
	pods, err := kubernetes.NewForConfig(kubelet)
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(h.Node.VolumeDirectory, "plugins", local.DriverName, "csi.sock")
	return &localStorage{
		driver: local.Driver{
			Node: h.Node.NodeName, Dir: settings.Directory, Socket: socket,
			Reserve: local.Reserve{Bytes: bytes, Fraction: share}, Overcommit: float64(settings.OvercommitPercent) / 100,
		},
		kubelet:    h.Node.VolumeDirectory,
		disabled:   settings.Disabled,
		controller: localController(client, socket, h.Node.NodeName),
		pods:       pods,
	}, nil
}

// localController makes and deletes the volumes of one node.
func localController(client *rest.Config, socket, node string) csi.Controller {
	return csi.Controller{
		Config: client, Drivers: []string{socket}, Node: node,
		Features: csi.Features(csi.Options{
			Capacity:  capacity.Options{Namespace: "openshift-infra"},
			Provision: provision.Options{RetryMax: 15 * time.Second}, // the driver is in this process: asking it often costs nothing
		}),
		Object: &storagev1.CSIDriverSpec{
			PodInfoOnMount: ptr.To(true), FSGroupPolicy: ptr.To(storagev1.FileFSGroupPolicy),
			VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral},
		},
	}
}

// Name is the part's name.
func (l *localStorage) Name() string { return l.driver.Name() }

// retryLocalStorage is how long to wait after the driver has failed, for instance because its disk is not mounted yet.
const retryLocalStorage = 10 * time.Second

// Run serves until ctx ends. It is ready at once, since the node does not need it.
func (l *localStorage) Run(ctx context.Context, ready func()) error {
	ready()
	if l.disabled {
		l.label(ctx, "null")
		<-ctx.Done()
		return nil
	}
	for ctx.Err() == nil {
		err := l.serve(ctx)
		if ctx.Err() != nil {
			return nil
		}
		limited, cancel := context.WithTimeout(ctx, retryLocalStorage)
		l.label(limited, "null")
		cancel()
		slog.Error("local storage does not work", "error", err, "again in", retryLocalStorage)
		select {
		case <-ctx.Done():
		case <-time.After(retryLocalStorage):
		}
	}
	return nil
}

// localStorageLabel is the label of nodes with local storage. It stays while the node restarts, so
// that pods wait for the driver. A node whose local storage is disabled or fails loses it.
const localStorageLabel = "slipway.openshift.io/local-storage"

// label sets the label of the node to a value in JSON. It retries until ctx ends.
func (l *localStorage) label(ctx context.Context, value string) {
	lastError := ""
	_ = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := patchLabel(ctx, l.pods, l.driver.Node, localStorageLabel, value)
		if err != nil && ctx.Err() == nil && err.Error() != lastError {
			lastError = err.Error()
			slog.Warn("retry to label the node for local storage", "error", err)
		}
		return err == nil, nil
	})
}

// serve runs the driver, and as soon as it serves what makes it known and used.
func (l *localStorage) serve(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	connection, err := driver.Dial(l.driver.Socket, driver.Options{})
	if err != nil {
		return err
	}
	defer connection.Close()
	registrar := register.Registrar{Driver: connection, Endpoint: l.driver.Socket, Dir: filepath.Join(l.kubelet, "plugins_registry")}

	var parts sync.WaitGroup
	defer parts.Wait()
	run := func(part Component, ready func()) {
		parts.Go(func() {
			if err := part.Run(ctx, ready); err != nil {
				cancel(err)
			}
		})
	}
	run(&l.driver, func() {
		run(&registrar, func() {})
		parts.Go(func() { l.label(ctx, `"true"`) })
		run(&caches{&l.driver, l.pods, l.driver.Node}, func() {})
		parts.Go(func() {
			if err := awaitSnapshots(ctx, l.controller.Config); err == nil {
				run(&l.controller, func() {})
			}
		})
	})
	<-ctx.Done()
	return context.Cause(ctx)
}

// awaitSnapshots waits until the API of snapshots is served. At the first start the control plane has only just made its definitions, and
// the controller looks once.
func awaitSnapshots(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
		_, err := client.ServerResourcesForGroupVersion("snapshot.storage.k8s.io/v1")
		return err == nil, nil
	})
}

// withoutManifests are the manifests that this host's settings leave out.
func (h *host) withoutManifests() []string {
	if h.Node.Slipway.LocalStorage.Disabled {
		return []string{bootstrap.LocalStorage}
	}
	return nil
}
