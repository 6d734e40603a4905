// Package parameters reads what the parameters of a StorageClass or VolumeSnapshotClass say to Kubernetes and not to the driver: which secrets each
// operation gets, and the file system.
package parameters

import (
	"fmt"
	"strings"
)

// prefix begins every parameter that is reserved for Kubernetes.
const prefix = "csi.storage.k8s.io/"

// Keys of the file system, the older one second.
const (
	fsType    = prefix + "fstype"
	oldFSType = "fstype"
)

// Operation is what a secret is for, as it is called in the keys of parameters.
type Operation string

// The operations that take secrets. Those of snapshots are for parameters of a VolumeSnapshotClass.
const (
	Provisioner       Operation = "provisioner"
	ControllerPublish Operation = "controller-publish"
	NodeStage         Operation = "node-stage"
	NodePublish       Operation = "node-publish"
	ControllerExpand  Operation = "controller-expand"
	NodeExpand        Operation = "node-expand"
	Snapshotter       Operation = "snapshotter"
	SnapshotterList   Operation = "snapshotter-list"
)

// key holds the names of the two parameters that choose a secret.
type key struct{ name, namespace string }

func (o Operation) key() key {
	return key{prefix + string(o) + "-secret-name", prefix + string(o) + "-secret-namespace"}
}

// oldKeys are the parameters of the document "CSI Volume Plugins in Kubernetes" (CSI Credentials) and of the provisioners of its time.
var oldKeys = map[Operation]key{
	Provisioner:       {"csiProvisionerSecretName", "csiProvisionerSecretNamespace"},
	ControllerPublish: {"csiControllerPublishSecretName", "csiControllerPublishSecretNamespace"},
	NodeStage:         {"csiNodeStageSecretName", "csiNodeStageSecretNamespace"},
	NodePublish:       {"csiNodePublishSecretName", "csiNodePublishSecretNamespace"},
}

// reserved tells for each key that is not passed to the driver that it is known.
func reserved() map[string]bool {
	known := map[string]bool{fsType: true, oldFSType: true}
	operations := []Operation{Provisioner, ControllerPublish, NodeStage, NodePublish, ControllerExpand, NodeExpand, Snapshotter, SnapshotterList}
	for _, operation := range operations {
		for _, k := range []key{operation.key(), oldKeys[operation]} {
			known[k.name], known[k.namespace] = true, true
		}
	}
	return known
}

// Passed are the parameters that the driver gets: all but the reserved ones. An unknown key with the reserved prefix is an error: it would be a
// misspelt one.
func Passed(all map[string]string) (map[string]string, error) {
	known := reserved()
	passed := map[string]string{}
	for name, value := range all {
		if known[name] {
			continue
		}
		if strings.HasPrefix(name, prefix) {
			return nil, fmt.Errorf("read parameters: %q is not known, and keys that begin with %s are reserved", name, prefix)
		}
		passed[name] = value
	}
	return passed, nil
}

// FSType is the file system that new volumes get, or otherwise if the parameters name none.
func FSType(all map[string]string, otherwise string) (string, error) {
	value, ok := all[fsType]
	old, oldOK := all[oldFSType]
	switch {
	case ok && oldOK:
		return "", fmt.Errorf("read parameters: %q and %q name a file system both; remove the older one, %q", fsType, oldFSType, oldFSType)
	case ok:
		return value, nil
	case oldOK:
		return old, nil
	default:
		return otherwise, nil
	}
}
