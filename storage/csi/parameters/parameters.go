// Package parameters parses the parameters of a StorageClass or VolumeSnapshotClass that are
// intended for Kubernetes, not for the driver: the secrets for each operation, and the file system
// type.
package parameters

import (
	"fmt"
	"strings"
)

// prefix is the prefix of all parameters that are reserved for Kubernetes.
const prefix = "csi.storage.k8s.io/"

// The parameters that set the file system type. The second parameter is deprecated.
const (
	fsType           = prefix + "fstype"
	deprecatedFSType = "fstype"
)

// Operation is an operation name as used in parameters that select secrets.
type Operation string

// The operations that use secrets. Snapshotter and SnapshotterList apply to the parameters of a
// VolumeSnapshotClass.
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

// key holds the names of the two parameters that select a secret.
type key struct{ name, namespace string }

func (o Operation) key() key {
	return key{prefix + string(o) + "-secret-name", prefix + string(o) + "-secret-namespace"}
}

// deprecatedKeys maps operations to the deprecated parameters that select their secrets. The
// document "CSI Volume Plugins in Kubernetes" (CSI Credentials) defines these parameters, and early
// provisioners used them.
var deprecatedKeys = map[Operation]key{
	Provisioner:       {"csiProvisionerSecretName", "csiProvisionerSecretNamespace"},
	ControllerPublish: {"csiControllerPublishSecretName", "csiControllerPublishSecretNamespace"},
	NodeStage:         {"csiNodeStageSecretName", "csiNodeStageSecretNamespace"},
	NodePublish:       {"csiNodePublishSecretName", "csiNodePublishSecretNamespace"},
}

// reserved returns all keys that are not passed to the driver.
func reserved() map[string]bool {
	keys := map[string]bool{fsType: true, deprecatedFSType: true}
	operations := []Operation{Provisioner, ControllerPublish, NodeStage, NodePublish, ControllerExpand, NodeExpand, Snapshotter, SnapshotterList}
	for _, operation := range operations {
		for _, k := range []key{operation.key(), deprecatedKeys[operation]} {
			keys[k.name], keys[k.namespace] = true, true
		}
	}
	return keys
}

// ForDriver returns the parameters that are passed to the driver: all parameters except reserved
// parameters. An unknown key with the reserved prefix is an error, because the key is probably
// misspelled.
func ForDriver(params map[string]string) (map[string]string, error) {
	reservedKeys := reserved()
	result := map[string]string{}
	for name, value := range params {
		if reservedKeys[name] {
			continue
		}
		if strings.HasPrefix(name, prefix) {
			return nil, fmt.Errorf("read parameters: %q is unknown, and keys with the prefix %s are reserved", name, prefix)
		}
		result[name] = value
	}
	return result, nil
}

// FSType returns the file system type of new volumes, or defaultType if the parameters do not set
// it.
func FSType(params map[string]string, defaultType string) (string, error) {
	value, ok := params[fsType]
	deprecated, deprecatedOK := params[deprecatedFSType]
	switch {
	case ok && deprecatedOK:
		return "", fmt.Errorf("read parameters: both %q and %q set the file system; remove the deprecated key %q", fsType, deprecatedFSType, deprecatedFSType)
	case ok:
		return value, nil
	case deprecatedOK:
		return deprecated, nil
	default:
		return defaultType, nil
	}
}
