package node

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-proxy/app"

	"github.com/slipway-platform/slipway/internal/arguments"
)

// Proxy is the component that runs upstream's service proxy, with nftables. Upstream's proxy exits
// the process when its Node object is deleted or the Node's addresses change. The supervisor then
// restarts the process.
type Proxy struct {
	// NodeName is the Node object's name.
	NodeName string
	// Kubeconfig is the path of the proxy's kubeconfig (system:kube-proxy).
	Kubeconfig string
	// Bridge is the pods' bridge: the proxy treats traffic from it as local and preserves source
	// addresses. Bridge is empty if the pods are connected to a different network.
	Bridge string
	// Pods contains the pod networks, at most one of each IP family. If there is no bridge, the
	// proxy treats traffic from these networks as local.
	Pods []netip.Prefix
	// HealthAddress is the host:port of the proxy's health endpoint. The proxy serves nothing else
	// there.
	HealthAddress string
	// SyncPeriod is the maximum interval at which the proxy repairs its rules.
	SyncPeriod time.Duration
	// Arguments are the administrator's flags (proxyArguments in node-config.yaml).
	Arguments arguments.Map
}

// Name returns the component's name.
func (p *Proxy) Name() string { return "proxy" }

// Run programs services until ctx is done. Upstream's proxy does not return when its context is
// canceled, so it keeps running until the process exits.
func (p *Proxy) Run(ctx context.Context, ready func()) error {
	opts := app.NewOptions()
	flags := pflag.NewFlagSet("proxy", pflag.ContinueOnError)
	opts.AddFlags(flags)
	// The configuration in upstream's options is private. Only flags or a configuration file can
	// set it.
	settings := arguments.Map{
		"kubeconfig":             {p.Kubeconfig},
		"hostname-override":      {p.NodeName},
		"proxy-mode":             {"nftables"},
		"healthz-bind-address":   {p.HealthAddress},
		"bind-address-hard-fail": {"true"},
		"conntrack-max-per-core": {"0"},
		"nodeport-addresses":     {"all"},
		"iptables-sync-period":   {p.SyncPeriod.String()}, // applies in every mode
	}
	if p.Bridge == "" {
		var networks []string
		for _, network := range p.Pods {
			networks = append(networks, network.String())
		}
		settings["detect-local-mode"], settings["cluster-cidr"] = []string{"ClusterCIDR"}, []string{strings.Join(networks, ",")}
	} else {
		settings["detect-local-mode"], settings["pod-bridge-interface"] = []string{"BridgeInterface"}, []string{p.Bridge}
	}
	if err := settings.ApplyTo("proxy", flags); err != nil {
		return err
	}
	if err := p.Arguments.ApplyTo("proxyArguments", flags); err != nil {
		return err
	}
	if err := opts.Complete(flags); err != nil {
		return fmt.Errorf("set up service proxy: %w", err)
	}
	if err := opts.Validate(); err != nil {
		return fmt.Errorf("check service proxy options: %w", err)
	}
	if err := p.closeMetrics(opts, flags); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- opts.Run(ctx) }()
	healthy := make(chan struct{})
	go func() {
		if poll(ctx, p.healthy) {
			close(healthy)
		}
	}()
	for {
		select {
		case <-healthy:
			ready()
			healthy = nil
		case err := <-done:
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("run service proxy: %w", err)
		case <-ctx.Done():
			return nil
		}
	}
}

// closeMetrics keeps the proxy from serving its metrics and configuration without authentication,
// unless the administrator sets an address for them. The kubelet in the same process serves the
// same metrics to authorized clients. Upstream's validation requires an address, so closeMetrics
// must run after validation.
func (p *Proxy) closeMetrics(opts *app.Options, flags *pflag.FlagSet) error {
	const port = "metrics-port"
	for _, name := range []string{"metrics-bind-address", port, "config"} {
		if len(p.Arguments[name]) > 0 {
			return nil
		}
	}
	if err := flags.Lookup(port).Value.Set("0"); err != nil {
		return fmt.Errorf("close service proxy metrics: %w", err)
	}
	if err := opts.Complete(flags); err != nil {
		return fmt.Errorf("set up service proxy: %w", err)
	}
	return nil
}

// healthy reports whether the proxy's health endpoint returns OK. The endpoint returns OK once the
// proxy has written its rules for the first time.
func (p *Proxy) healthy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.HealthAddress+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}
