package volumeplugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// recordLabel is the label of the ConfigMaps that record attachments. They are in
	// metav1.NamespaceSystem.
	recordLabel = "slipway.openshift.io/flexvolume-attachment"
	// recordTimeout is the timeout for changing a shared record.
	recordTimeout = 10 * time.Second
)

// SharedRecords records attachments in the cluster, each as a ConfigMap. If the master that was
// attaching a volume is lost, another master finds the record.
type SharedRecords struct {
	Client kubernetes.Interface
}

func (r *SharedRecords) add(a attachment) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	_, err := r.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: sharedName(a), Labels: map[string]string{recordLabel: "true"}},
		Data:       map[string]string{"driver": a.driver, "node": a.node, "volume": a.volume},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

func (r *SharedRecords) remove(a attachment) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	err := r.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Delete(ctx, sharedName(a), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// list returns all recorded attachments.
func (r *SharedRecords) list(ctx context.Context) (list []attachment, err error) {
	objects, err := r.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: recordLabel})
	if err != nil {
		return nil, fmt.Errorf("list records of attachments: %w", err)
	}
	for _, object := range objects.Items {
		list = append(list, attachment{driver: object.Data["driver"], node: object.Data["node"], volume: object.Data["volume"]})
	}
	return list, nil
}

// sharedName returns the name of an attachment's ConfigMap.
func sharedName(a attachment) string {
	sum := sha256.Sum256([]byte(a.driver + "\n" + a.node + "\n" + a.volume))
	return "flexvolume-attachment-" + hex.EncodeToString(sum[:16])
}
