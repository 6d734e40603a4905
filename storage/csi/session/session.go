// Package session provides the clients and caches that the controllers of one CSI driver share.
package session

import (
	"context"

	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	snapshotinformers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/slipway-platform/slipway/storage/csi/driver"
)

// Session provides one driver's controllers with clients and caches. A session ends when the
// driver's description changes or the process is no longer the leader. All drivers share the
// informers. An informer that is requested from Informers before the controllers run is started
// automatically.
type Session struct {
	// Client is the client for built-in resources. Config is used to create clients for custom
	// resources.
	Client kubernetes.Interface
	Config *rest.Config
	// Informers is the shared informer factory.
	Informers informers.SharedInformerFactory
	// Snapshots is the client for snapshot.storage.k8s.io, and SnapshotInformers is its informer
	// factory. Both are nil if the API server does not serve this group.
	Snapshots         snapshotclient.Interface
	SnapshotInformers snapshotinformers.SharedInformerFactory
	// Driver is the connection to the driver, and Description is the driver's description.
	Driver      *driver.Driver
	Description *driver.Description
	// Events records events for users.
	Events record.EventRecorder
	// Confirm returns an error if this process is no longer the leader. It is nil if there is only
	// one process.
	Confirm func(context.Context) error
	// Node, if set, is the only node that the driver serves: only this node's volumes are
	// provisioned and deleted.
	Node string
	// Queues provides metrics for the controllers' queues.
	Queues workqueue.MetricsProvider
}
