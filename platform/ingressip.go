package platform

import (
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/controller/ingressip"
)

// ingressAddresses gives services of type LoadBalancer addresses, unless there is no network of them.
func (h *host) ingressAddresses() (Component, error) {
	network := h.Master.IngressNetwork()
	if !network.IsValid() {
		return idle("ingress-addresses"), nil
	}
	config, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &ingressip.Addresses{Client: client, Network: network}, nil
}
