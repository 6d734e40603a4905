package command

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

// etcdAddCommand returns the command that adds a member that Slipway does not run, such as a
// backup. A new master joins with `slipway up --join` instead.
func etcdAddCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use: "add NAME PEER-URL", Short: "Add a learner, and print the settings of its etcd", Args: cobra.ExactArgs(2),
		Long: "Add a learner, and print the settings of its etcd, as `etcdctl member add` does. New masters do not need this command: `slipway up\n" +
			"--join` adds their members. The learner gets a vote when it has caught up and the number of voters remains odd. If it does not start\n" +
			"within a minute, it is removed.",
		Example: "  slipway etcd add backup https://192.0.2.14:2380",
		RunE: func(cmd *cobra.Command, args []string) error {
			peer, err := peerURL(args[1])
			if err != nil {
				return err
			}
			return withEtcd(cmd.Context(), opts, func(ctx context.Context, client etcdmember.Client) error {
				members, err := client.AddLearner(ctx, peer)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Added %s as a learner. The settings of its etcd:\n\n%s", args[0], memberSettings(args[0], peer, members))
				return err
			})
		},
	}
}

// memberSettings returns the environment variables with which the etcd of a new member must start.
func memberSettings(name, peer string, members []etcdmember.Member) string {
	var cluster []string
	for _, m := range members {
		switch {
		case m.PeerURL == peer:
			cluster = append(cluster, name+"="+peer)
		case m.Name == "": // the member has not started yet
			cluster = append(cluster, fmt.Sprintf("%x=%s", m.ID, m.PeerURL))
		default:
			cluster = append(cluster, m.Name+"="+m.PeerURL)
		}
	}
	return fmt.Sprintf("ETCD_NAME=%q\nETCD_INITIAL_CLUSTER=%q\nETCD_INITIAL_ADVERTISE_PEER_URLS=%q\nETCD_INITIAL_CLUSTER_STATE=\"existing\"\n",
		name, strings.Join(cluster, ","), peer)
}

// etcdUpdateCommand returns the command that changes a member's address.
func etcdUpdateCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use: "update NAME PEER-URL", Short: "Change the address at which the other members reach a member", Args: cobra.ExactArgs(2),
		Long: "Change the address at which the other members reach a member, for instance before you change the address of a master's host. A\n" +
			"master that starts with another address publishes it itself, if the other members have a majority.",
		Example: "  slipway etcd update master-3 https://192.0.2.23:2380",
		RunE: func(cmd *cobra.Command, args []string) error {
			peer, err := peerURL(args[1])
			if err != nil {
				return err
			}
			return withMember(cmd.Context(), opts, args[0], func(ctx context.Context, client etcdmember.Client, member etcdmember.Member) error {
				if err := client.Update(ctx, member.ID, peer); err != nil {
					return err
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s has the address %s.\n", args[0], peer)
				return err
			})
		},
	}
}

// removeMember removes the member with the given name or ID.
func removeMember(cmd *cobra.Command, opts *options, name string) error {
	return withMember(cmd.Context(), opts, name, func(ctx context.Context, client etcdmember.Client, member etcdmember.Member) error {
		if err := client.Remove(ctx, member.ID); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "Removed %s.\n", name)
		return err
	})
}

// peerURL checks that a member's address has the form https://HOST:PORT.
func peerURL(text string) (string, error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "https" || parsed.Port() == "" || parsed.Path != "" {
		return "", fmt.Errorf("parse member address %q: must be https://HOST:PORT", text)
	}
	return text, nil
}

// withEtcd calls a function with a client for this master's etcd cluster.
func withEtcd(ctx context.Context, opts *options, run func(context.Context, etcdmember.Client) error) error {
	client, err := etcdClient(opts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	return run(ctx, client)
}

// withMember calls a function with the member that has the given name or ID.
func withMember(ctx context.Context, opts *options, name string, run func(context.Context, etcdmember.Client, etcdmember.Member) error) error {
	return withEtcd(ctx, opts, func(ctx context.Context, client etcdmember.Client) error {
		members, err := client.List(ctx)
		if err != nil {
			return err
		}
		for _, m := range members {
			if m.Name == name || fmt.Sprintf("%x", m.ID) == name {
				return run(ctx, client, m)
			}
		}
		return fmt.Errorf("etcd has no member %q; see `slipway etcd members`", name)
	})
}
