package controlplane

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/controller/encryption"
	"github.com/slipway-platform/slipway/controller/masters"
	"github.com/slipway-platform/slipway/internal/arguments"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// encryptionConfig returns the path of the cluster's encryption configuration. It returns "" if the
// cluster does not encrypt objects, or if an administrator has configured a different file.
func (h *Host) encryptionConfig() (string, error) {
	if kube.ConfiguresEncryption(arguments.Map(h.Master.KubernetesMasterConfig.APIServerArguments)) {
		return "", nil
	}
	return pki.EnsureEncryption(h.PKIDir(), *h.Master.Slipway.EncryptSecrets)
}

// encryptionRewriter returns the component that rewrites objects that were stored under a previous
// encryption configuration.
func (h *Host) encryptionRewriter() (component.Component, error) {
	file, err := h.encryptionConfig()
	if err != nil {
		return nil, err
	}
	rewriter := &encryption.Rewriter{Client: h.limitedConfig(50, 100), File: file}
	if h.SeveralMasters() {
		rewriter.Servers = func(ctx context.Context) ([]*rest.Config, error) { return masters.Connections(ctx, rewriter.Client) }
	}
	for _, name := range pki.EncryptedResources() {
		rewriter.Resources = append(rewriter.Resources, schema.ParseGroupResource(name).WithVersion("v1"))
	}
	return rewriter, nil
}
