package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/controller/hosts"
	"github.com/slipway-platform/slipway/controller/masters"
	"github.com/slipway-platform/slipway/internal/etcdmember"
	"github.com/slipway-platform/slipway/platform/host"
)

// removalTimeout is the timeout for a request to a master.
const removalTimeout = 10 * time.Second

func leaveCommand(opts *options) *cobra.Command {
	var force bool
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "leave",
		Short: "Remove this host from the cluster that it joined",
		Long: "Remove this host from the cluster that it joined: the master evicts its pods, deletes its node and rejects its certificates.\n" +
			"A master that leaves is no longer a member of etcd. Erase its disk, which contained the private keys of the cluster.\n" +
			"Then the command removes everything on this host, like `slipway down --purge`. With --force, it does not wait for the master.",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			h, err := opts.load()
			if err != nil {
				return err
			}
			if !h.Joined() && !h.SeveralMasters() {
				return errors.New("this host has not joined a cluster; to remove its own cluster, use `slipway down --purge`")
			}
			if !force {
				servers, err := leaveServers(ctx, h)
				if err != nil {
					return err
				}
				if err := leave(ctx, h.Node.NodeName, servers, timeout, os.Stderr); err != nil {
					return err
				}
			}
			return down(ctx, opts, true, os.Stderr)
		},
	}
	command.Flags().BoolVar(&force, "force", false, "remove everything on this host even if no master responds; then run oc delete node on a master")
	command.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait until the pods of this host are evicted")
	return command
}

// leaveServers returns the API servers through which this host can leave the cluster. For a master,
// these are the servers of the other masters, because its own API server stops when its etcd member
// is removed.
func leaveServers(ctx context.Context, h *host.Host) ([]*rest.Config, error) {
	config, err := h.StatusClient()
	if err != nil {
		return nil, err
	}
	if h.Joined() {
		return []*rest.Config{config}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	members, err := h.EtcdMembers().List(ctx)
	if err != nil {
		return nil, err
	}
	votes := slices.ContainsFunc(members, func(m etcdmember.Member) bool { return !m.Learner && m.Name != h.Node.NodeName })
	if !votes {
		return nil, errors.New("this host is the only voting member of etcd; add other masters first, see `slipway etcd members`; to remove the whole cluster, use `slipway down --purge`")
	}
	servers, err := masters.Connections(ctx, config)
	if err != nil {
		return nil, err
	}
	servers = slices.DeleteFunc(servers, func(server *rest.Config) bool { return server.Host == config.Host })
	if len(servers) == 0 {
		return nil, errors.New("no other master is serving the API; start one first")
	}
	return servers, nil
}

// leave requests that a master remove the node, and waits until the node no longer exists. If a
// master does not respond, leave continues with the next master.
func leave(ctx context.Context, node string, servers []*rest.Config, timeout time.Duration, out io.Writer) error {
	var clients []kubernetes.Interface
	for _, server := range servers {
		server = rest.CopyConfig(server)
		server.Timeout = removalTimeout
		client, err := kubernetes.NewForConfig(server)
		if err != nil {
			return fmt.Errorf("connect to %s as this host: %w", server.Host, err)
		}
		clients = append(clients, client)
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	requested, current := false, 0
	lastErr := error(nil)
	err := wait.PollUntilContextCancel(ctx, time.Second/2, true, func(ctx context.Context) (bool, error) {
		gone := false
		gone, lastErr = requestRemoval(ctx, clients[current], node, &requested)
		if lastErr != nil {
			current = (current + 1) % len(clients)
		}
		return gone, nil
	})
	if err != nil {
		if lastErr == nil {
			lastErr = errors.New("pods remain, see `oc get pods -A -o wide` on a master; a pod disruption budget can prevent their eviction")
		}
		return fmt.Errorf("leave the cluster: the node still exists after %s: %w; repeat the command, or use --force", timeout, lastErr)
	}
	fmt.Fprintf(out, "%5.1fs  node removed from the cluster\n", time.Since(start).Seconds())
	return nil
}

// requestRemoval annotates the node, unless *requested is true, and reports whether the node no
// longer exists. An Unauthorized response also means that the node no longer exists, because a
// removed node's credentials are invalid.
func requestRemoval(ctx context.Context, client kubernetes.Interface, name string, requested *bool) (gone bool, err error) {
	if !*requested {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, hosts.LeaveAnnotation)
		_, err = client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		*requested = err == nil
	} else {
		_, err = client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err) {
		return true, nil
	}
	return false, err
}
