// Package loadbalancer runs a load balancer in front of the API servers of several masters, on a
// host outside the cluster. It watches the list of masters with a kubeconfig that grants no other
// permissions.
package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipway-platform/slipway/node/balancer"
	"github.com/slipway-platform/slipway/router/masters"
)

// localAddress is the loopback address at which the load balancer itself connects to a healthy
// master.
const localAddress = "127.0.0.1:8442"

// LoadBalancer is the component that runs HAProxy and watches the list of masters.
type LoadBalancer struct {
	// Dir is the directory that contains the kubeconfig, the last list of masters and HAProxy's
	// files.
	Dir string
	// Program is the path to the HAProxy program. User is HAProxy's user account, or "".
	Program, User string
	// Listen is the address that clients connect to. Stats is the address of the statistics page.
	Listen, Stats string
	// Local is the address at which the load balancer itself connects to a healthy master. The
	// default is 127.0.0.1:8442.
	Local string
}

// KubeconfigFile returns the path to the kubeconfig in a load balancer's directory.
func KubeconfigFile(dir string) string { return filepath.Join(dir, "kubeconfig") }

// Name returns the component's name.
func (*LoadBalancer) Name() string { return "load-balancer" }

// Run balances connections until ctx is done. It calls ready when HAProxy accepts connections. If
// no master responds, Run uses the list of masters from its last run.
func (l *LoadBalancer) Run(ctx context.Context, ready func()) error {
	kubeconfig, err := clientcmd.LoadFromFile(KubeconfigFile(l.Dir))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read kubeconfig: %w; create it on a master: slipway lb kubeconfig", err)
	}
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	names, err := serversOf(kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig %q: %w", KubeconfigFile(l.Dir), err)
	}
	stored := balancer.ServerFile(filepath.Join(l.Dir, "masters.json"))
	addresses, err := stored.Read()
	if err != nil {
		return err
	}
	if len(addresses) == 0 {
		addresses = names.addresses()
	}
	proxy := &masters.Proxy{
		Config:  masters.Config{Listen: l.Listen, Stats: l.Stats, User: l.User, Servers: names.servers(addresses)},
		Program: l.Program, Dir: l.Dir,
	}
	follower := &balancer.Balancer{
		Address: localAddress, Servers: addresses,
		Save: func(addresses []string) error {
			return errors.Join(proxy.Set(names.servers(addresses)), stored.Save(addresses))
		},
	}
	if l.Local != "" {
		follower.Address = l.Local
	}
	config, err := clientConfig(kubeconfig, follower.Address)
	if err != nil {
		return err
	}
	if err := follower.Connect(config); err != nil {
		return err
	}
	return runAll(ctx, ready, proxy.Run, follower.Run)
}

// runAll runs all functions in parts until ctx is done or one of them fails. It calls ready when
// all of them are ready.
func runAll(ctx context.Context, ready func(), parts ...func(context.Context, func()) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group, starting sync.WaitGroup
	starting.Add(len(parts))
	for _, part := range parts {
		group.Go(func() {
			started := sync.OnceFunc(starting.Done)
			defer started()
			if err := part(ctx, started); err != nil {
				cancel(err)
			}
		})
	}
	starting.Wait()
	if ctx.Err() == nil {
		ready()
	}
	group.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// masterNames maps the host:port addresses of masters to their names.
type masterNames map[string]string

// serversOf returns the masters in a kubeconfig. Each cluster in the kubeconfig is a master.
func serversOf(kubeconfig *clientcmdapi.Config) (masterNames, error) {
	names := masterNames{}
	for name, cluster := range kubeconfig.Clusters {
		server, err := masters.ParseServer(name + "=" + strings.TrimPrefix(cluster.Server, "https://"))
		if err != nil {
			return nil, err
		}
		names[server.Address] = server.Name
	}
	if len(names) == 0 {
		return nil, errors.New("it contains no cluster, and each cluster must be a master; create it again with `slipway lb kubeconfig`")
	}
	return names, nil
}

// addresses returns the masters' addresses, sorted.
func (n masterNames) addresses() (list []string) {
	for address := range n {
		list = append(list, address)
	}
	slices.Sort(list)
	return list
}

// servers returns the masters with the given addresses. If a master is not in the kubeconfig
// because it joined later, its name is the host in its address.
func (n masterNames) servers(addresses []string) (list []masters.Server) {
	for _, address := range addresses {
		name, ok := n[address]
		if host, port, err := net.SplitHostPort(address); !ok && err == nil {
			name = strings.ReplaceAll(host, ":", "-")
			if slices.ContainsFunc(list, func(s masters.Server) bool { return s.Name == name }) {
				name += "-" + port
			}
		}
		list = append(list, masters.Server{Name: name, Address: address})
	}
	return list
}

// clientConfig returns a client configuration for the kubeconfig's user that connects through the
// local address.
func clientConfig(kubeconfig *clientcmdapi.Config, address string) (*rest.Config, error) {
	overrides := &clientcmd.ConfigOverrides{ClusterInfo: clientcmdapi.Cluster{Server: "https://" + address}}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, nil
}
