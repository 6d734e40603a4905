package platform

import (
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/controller/unidle"
	idleproxy "github.com/slipway-platform/slipway/network/idle"
)

// unidling wakes services that a node says are needed.
func (h *host) unidling() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	return &unidle.Services{Client: client}, nil
}

// idling holds connections to idle services, unless enableUnidling is false.
func (h *host) idling() (Component, error) {
	config, err := kubeconfig(h.identity.IdlingKubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	enabled := h.Node.EnableUnidling
	return &idleproxy.Proxy{Client: client, Table: h.idleTable(), Host: h.Node.NodeName, Disabled: enabled != nil && !*enabled}, nil
}

// idleTable is the nftables table of connections to idle services.
func (h *host) idleTable() string { return h.Node.Slipway.NFTTable + "-idle" }
