// Package session is what the loops of one CSI driver have in common while it is served.
package session

import (
	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	snapshotinformers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/slipway-platform/slipway/storage/csi/driver"
)

// Session is one driver that is served, from the time it has said what it can do until it says something else or the leadership ends. The
// caches are shared by all drivers; whoever takes an informer from Informers before the loops run need not start it.
type Session struct {
	// Client speaks to the API server, and Config connects clients of custom resources.
	Client kubernetes.Interface
	Config *rest.Config
	// Informers are the shared caches.
	Informers informers.SharedInformerFactory
	// Snapshots speaks to the API server about snapshot.storage.k8s.io, and SnapshotInformers are the caches of it. Both are nil where the API server
	// does not serve that group.
	Snapshots         snapshotclient.Interface
	SnapshotInformers snapshotinformers.SharedInformerFactory
	// Driver is the connection, Description what the driver says about itself.
	Driver      *driver.Driver
	Description *driver.Description
	// Events tell users what happens to their objects.
	Events record.EventRecorder
	// Node, if set, is the node whose volumes alone are provisioned and deleted: the driver serves this node only.
	Node string
	// Queues measure the queues of the driver's loops.
	Queues workqueue.MetricsProvider
}
