package nodeprocess

import (
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/node/groupconfig"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// nodeConfig returns the component that writes the configuration of the node's group to
// node-config.yaml.
func (h *Host) nodeConfig() (component.Component, error) {
	client, err := pki.NewClient(h.Credentials.NodeKubeconfig)
	if err != nil {
		return nil, err
	}
	return &groupconfig.Sync{
		Client: client, Node: h.Node.NodeName,
		File: config.NodeFile(h.DataDir), Record: h.Path("node", "node-group.json"),
		Merge: h.mergeGroup, Ready: h.allReady,
	}, nil
}

// mergeGroup merges a node group's configuration into this host's configuration and validates the
// result.
func (h *Host) mergeGroup(applied, group []byte) (*groupconfig.Change, error) {
	file, err := h.MergeGroup(applied, group)
	if err != nil {
		return nil, err
	}
	kubelet, err := h.newKubelet(file.Next.Node)
	if err != nil {
		return nil, err
	}
	if err := kubelet.Check(); err != nil {
		return nil, err
	}
	return &groupconfig.Change{File: file.Content, Applied: file.Applied, Restart: len(file.Changed) > 0}, nil
}
