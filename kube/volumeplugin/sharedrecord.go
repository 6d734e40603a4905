package volumeplugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recordLabel is the label of the ConfigMaps that record attachments. They are in
// metav1.NamespaceSystem.
const recordLabel = "slipway.openshift.io/flexvolume-attachment"

// Keys of a record's ConfigMap.
const (
	driverKey = "driver"
	volumeKey = "volume"
	// nodesKey contains the names of the nodes to which the volume might be attached, separated by
	// spaces.
	nodesKey = "nodes"
	// masterKey contains the name of the master that is calling the driver. It is empty between
	// calls.
	masterKey = "master"
	// timeoutKey contains the timeout of the driver call.
	timeoutKey = "timeout"
	// formerNodeKey contains the node in a record of an earlier version. That record describes one
	// attachment instead of one volume.
	formerNodeKey = "node"
)

// newRecord returns an initial record for a volume that does not have one yet.
func newRecord(a attachment) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: recordName(a), Labels: map[string]string{recordLabel: "true"}},
		Data:       map[string]string{driverKey: a.driver, volumeKey: a.volume},
	}
}

// list returns all recorded attachments.
func (r *SharedRecords) list(ctx context.Context) (list []attachment, err error) {
	records, err := r.all(ctx)
	for _, record := range records {
		for _, node := range nodesOf(&record) {
			list = append(list, attachment{driver: record.Data[driverKey], node: node, volume: record.Data[volumeKey]})
		}
	}
	return list, err
}

func (r *SharedRecords) all(ctx context.Context) ([]corev1.ConfigMap, error) {
	list, err := r.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: recordLabel})
	if err != nil {
		return nil, fmt.Errorf("list attachment records: %w", err)
	}
	return list.Items, nil
}

// read returns a volume's record. The record of an unknown volume has no resource version.
func (r *SharedRecords) read(ctx context.Context, a attachment) (*corev1.ConfigMap, error) {
	record, err := r.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, recordName(a), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return newRecord(a), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read record of %v: %w", a, err)
	}
	return record, nil
}

// write stores a record. It fails if the stored record has changed since it was read. It deletes a
// record that names neither a node nor a master.
func (r *SharedRecords) write(ctx context.Context, record *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	records := r.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	switch {
	case record.Data[masterKey] == "" && len(nodesOf(record)) == 0:
		return record, records.Delete(ctx, record.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &record.ResourceVersion}})
	case record.ResourceVersion == "":
		return records.Create(ctx, record, metav1.CreateOptions{})
	}
	return records.Update(ctx, record, metav1.UpdateOptions{})
}

// convert replaces the records of earlier versions.
func (r *SharedRecords) convert(ctx context.Context) error {
	records, err := r.all(ctx)
	if err != nil {
		return err
	}
	for _, former := range records {
		node, isFormer := former.Data[formerNodeKey]
		if !isFormer {
			continue
		}
		record, err := r.read(ctx, attachment{driver: former.Data[driverKey], node: node, volume: former.Data[volumeKey]})
		if err == nil && !slices.Contains(nodesOf(record), node) {
			setNode(record, node, true)
			_, err = r.write(ctx, record)
		}
		if err == nil {
			err = r.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Delete(ctx, former.Name, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("convert record %q of an attachment: %w", former.Name, err)
		}
	}
	return nil
}

func nodesOf(record *corev1.ConfigMap) []string { return strings.Fields(record.Data[nodesKey]) }

// setNode adds a node to a record, or removes it. If node is empty, it changes nothing.
func setNode(record *corev1.ConfigMap, node string, attached bool) {
	if node == "" {
		return
	}
	nodes := map[string]bool{}
	for _, name := range nodesOf(record) {
		nodes[name] = true
	}
	delete(nodes, node)
	if attached {
		nodes[node] = true
	}
	record.Data[nodesKey] = strings.Join(slices.Sorted(maps.Keys(nodes)), " ")
}

// recordName returns the name of a volume's ConfigMap.
func recordName(a attachment) string {
	sum := sha256.Sum256([]byte(a.driver + "\n" + a.volume))
	return "flexvolume-attachment-" + hex.EncodeToString(sum[:16])
}
