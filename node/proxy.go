package node

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-proxy/app"

	"github.com/slipway-platform/slipway/internal/arguments"
)

// Proxy is upstream's service proxy as a part of this process, with nftables. It ends its process
// when its Node object is deleted or changes its addresses, and starts anew with the process.
type Proxy struct {
	// NodeName is the Node object's name.
	NodeName string
	// Kubeconfig is the path of the proxy's client identity (system:kube-proxy).
	Kubeconfig string
	// Bridge is the pods' bridge: traffic from it is local and keeps its source address.
	Bridge string
	// HealthAddress is the host:port pair on which the proxy tells about its health, and about nothing else.
	HealthAddress string
	// Arguments are the administrator's flags (proxyArguments of node-config.yaml).
	Arguments arguments.Map
}

// Name is the part's name.
func (p *Proxy) Name() string { return "proxy" }

// Run programs services until ctx ends. Upstream's proxy does not return on cancel: Run leaves it
// behind then, to end with the process.
func (p *Proxy) Run(ctx context.Context, ready func()) error {
	opts := app.NewOptions()
	flags := pflag.NewFlagSet("proxy", pflag.ContinueOnError)
	opts.AddFlags(flags)
	// Upstream's options keep their configuration private: flags are the only typed way in but a file.
	settings := arguments.Map{
		"kubeconfig":             {p.Kubeconfig},
		"hostname-override":      {p.NodeName},
		"proxy-mode":             {"nftables"},
		"detect-local-mode":      {"BridgeInterface"},
		"pod-bridge-interface":   {p.Bridge},
		"healthz-bind-address":   {p.HealthAddress},
		"bind-address-hard-fail": {"true"},
		"conntrack-max-per-core": {"0"},
		"nodeport-addresses":     {"all"},
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
	ended := make(chan error, 1)
	go func() { ended <- opts.Run(ctx) }()
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
		case err := <-ended:
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("run service proxy: %w", err)
		case <-ctx.Done():
			return nil
		}
	}
}

// closeMetrics keeps the proxy from serving metrics and its configuration without a login, unless the administrator
// gives it an address for them. Kubelet, which is in the same process, serves the same metrics to those who may see them.
// Upstream validates no proxy without such an address, so this comes after the validation.
func (p *Proxy) closeMetrics(opts *app.Options, flags *pflag.FlagSet) error {
	const port = "metrics-port"
	for _, name := range []string{"metrics-bind-address", port, "config"} {
		if len(p.Arguments[name]) > 0 {
			return nil
		}
	}
	if err := flags.Lookup(port).Value.Set("0"); err != nil {
		return fmt.Errorf("close metrics of service proxy: %w", err)
	}
	if err := opts.Complete(flags); err != nil {
		return fmt.Errorf("set up service proxy: %w", err)
	}
	return nil
}

// healthy says whether the proxy's health page is good, which it is after its first write of rules.
func (p *Proxy) healthy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.HealthAddress+"/healthz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}
