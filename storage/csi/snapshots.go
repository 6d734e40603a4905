package csi

import (
	"fmt"
	"log/slog"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	snapshotinformers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// snapshots creates the client and informers for snapshots if the API server serves them. A cluster
// that Slipway does not run might not have the snapshot CRDs.
func (t *term) snapshots() error {
	_, err := t.client.Discovery().ServerResourcesForGroupVersion(snapshotv1.SchemeGroupVersion.String())
	if apierrors.IsNotFound(err) {
		slog.Warn("snapshots are not served: the API server lacks their CRDs; install them and restart", "group", snapshotv1.GroupName)
		return nil
	}
	if err != nil {
		return fmt.Errorf("find API of snapshots: %w", err)
	}
	if t.snapshotClient, err = snapshotclient.NewForConfig(t.Config); err != nil {
		return fmt.Errorf("create client for snapshots: %w", err)
	}
	t.snapshotInformers = snapshotinformers.NewSharedInformerFactoryWithOptions(t.snapshotClient, 0, snapshotinformers.WithTransform(trim))
	return nil
}
