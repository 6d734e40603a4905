package nodeprocess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/node/groupconfig"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// memberCertificates returns the component that renews a joined host's certificates.
func (h *Host) memberCertificates() (component.Component, error) {
	return &node.Certificates{Member: h.Member()}, nil
}

// clusterSettings returns the component that updates a joined host's copy of the cluster's
// settings.
func (h *Host) clusterSettings() (component.Component, error) {
	authority, err := os.ReadFile(h.Credentials.NodeCA)
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	m := h.Member()
	request := join.Request{
		Role: join.RoleNode, NodeName: h.Node.NodeName, Address: h.Address.String(), DNSDomain: h.Node.DNSDomain, Version: version.Slipway(),
	}
	return &groupconfig.ClusterSettings{
		File: config.MasterFile(h.DataDir), Check: config.CheckNodeSettings, MasterServes: h.masterServes,
		Fetch: func(ctx context.Context) (string, error) {
			certificate, err := m.Certificate(time.Now())
			if err != nil {
				return "", err
			}
			response, err := join.Client{URL: m.URL, Certificate: certificate}.Join(ctx, authority, request)
			if err == nil && response.SettingsDiffer {
				err = errors.New("the masters have different settings; see `slipway status` on the masters")
			}
			if err != nil {
				return "", err
			}
			return response.Settings, nil
		},
	}, nil
}
