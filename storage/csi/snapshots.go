package csi

import (
	"fmt"
	"log/slog"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	snapshotinformers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// snapshots prepares the caches of snapshots, if the API server has them: a cluster that is not ours may lack the definitions.
func (t *term) snapshots() error {
	_, err := t.client.Discovery().ServerResourcesForGroupVersion(snapshotv1.SchemeGroupVersion.String())
	if apierrors.IsNotFound(err) {
		slog.Warn("snapshots are not served: the API server lacks the definitions of " + snapshotv1.GroupName + "; install them and start again")
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for the API of snapshots: %w", err)
	}
	if t.snapshotClient, err = snapshotclient.NewForConfig(t.Config); err != nil {
		return fmt.Errorf("connect for snapshots: %w", err)
	}
	t.snapshotInformers = snapshotinformers.NewSharedInformerFactoryWithOptions(t.snapshotClient, 0, snapshotinformers.WithTransform(trim))
	return nil
}
