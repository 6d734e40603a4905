// Package loadbalancer runs a load balancer in front of the API of several masters, on a host
// outside of the cluster. It follows the list of the masters with a kubeconfig that permits nothing
// else.
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

// localAddress is the address, on this host alone, at which the load balancer itself reaches a
// serving master.
const localAddress = "127.0.0.1:8442"

// LoadBalancer is the component that runs HAProxy and follows the masters.
type LoadBalancer struct {
	// Dir contains the kubeconfig, the last list of masters, and HAProxy's files.
	Dir string
	// Program is the path of HAProxy, and User its account or "".
	Program, User string
	// Listen is the address for clients, Stats the address of the statistics.
	Listen, Stats string
	// Local is the address at which a serving master is reached, by default 127.0.0.1:8442.
	Local string
}

// KubeconfigFile returns the path of the kubeconfig in a load balancer's directory.
func KubeconfigFile(dir string) string { return filepath.Join(dir, "kubeconfig") }

// Name returns the component's name.
func (*LoadBalancer) Name() string { return "load-balancer" }

// Run balances until ctx ends. It calls ready when HAProxy serves. If no master responds, it uses
// the masters of its last run.
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

// runAll runs parts until ctx ends or one of them fails. It calls ready when all are.
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

// masterNames are the names of masters by host:port.
type masterNames map[string]string

// serversOf returns the masters of a kubeconfig: each is a cluster.
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
		return nil, errors.New("it contains no master")
	}
	return names, nil
}

// addresses returns the sorted addresses.
func (n masterNames) addresses() (list []string) {
	for address := range n {
		list = append(list, address)
	}
	slices.Sort(list)
	return list
}

// servers returns the masters with addresses. The name of a master that joined later is its host.
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

// clientConfig returns the connection of a kubeconfig's user through the local address.
func clientConfig(kubeconfig *clientcmdapi.Config, address string) (*rest.Config, error) {
	overrides := &clientcmd.ConfigOverrides{ClusterInfo: clientcmdapi.Cluster{Server: "https://" + address}}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, nil
}
