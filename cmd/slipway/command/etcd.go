package command

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

// etcdTimeout is the timeout for each request from `slipway etcd` to a member.
const etcdTimeout = 5 * time.Second

// etcdCommand returns the command that shows and maintains the etcd members.
func etcdCommand(opts *options) *cobra.Command {
	command := &cobra.Command{Use: "etcd", Short: "Inspect and maintain etcd, which stores all objects", GroupID: "host"}
	command.AddCommand(
		&cobra.Command{
			Use: "members", Short: "List the members", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return listMembers(cmd, opts) },
		},
		&cobra.Command{
			Use: "health", Short: "Print the state of each member; exits with 1 if a member is not healthy", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return checkMembers(cmd, opts) },
		},
		etcdAddCommand(opts),
		etcdUpdateCommand(opts),
		&cobra.Command{
			Use: "remove NAME", Short: "Remove the member of a master that is lost and no longer has a node", Args: cobra.ExactArgs(1),
			Long: "Remove the member of a master that is lost and no longer has a node. For a master with a node, use `slipway leave` on it, or\n" +
				"`oc delete node` if it is lost: they also revoke its certificates.",
			RunE: func(cmd *cobra.Command, args []string) error { return removeMember(cmd, opts, args[0]) },
		},
		&cobra.Command{
			Use: "defrag", Short: "Return unused space in the database files to the disk, one member after the other", Args: cobra.NoArgs,
			Long: "Return unused space in the database files to the disk, one member after the other. A member serves no requests while it is defragmented.",
			RunE: func(cmd *cobra.Command, _ []string) error { return defragment(cmd, opts) },
		},
		snapshotCommand(opts),
		resetCommand(opts),
		etcdConfCommand(),
	)
	return command
}

// etcdClient returns a client for this master's etcd cluster.
func etcdClient(opts *options) (etcdmember.Client, error) {
	h, err := opts.loadMaster()
	if err != nil {
		return etcdmember.Client{}, err
	}
	return h.EtcdMembers(), nil
}

func listMembers(cmd *cobra.Command, opts *options) error {
	client, err := etcdClient(opts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), etcdTimeout)
	defer cancel()
	members, err := client.List(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tNAME\tROLE\tPEERS\tCLIENTS")
	for _, m := range members {
		fmt.Fprintf(table, "%x\t%s\t%s\t%s\t%s\n", m.ID, m.Name, m.Role(), m.PeerURL, m.ClientURL)
	}
	return table.Flush()
}

// errUnhealthy makes `slipway etcd health` exit with status 1 after it has printed the members.
var errUnhealthy = errors.New("not every etcd member is healthy")

func checkMembers(cmd *cobra.Command, opts *options) error {
	client, err := etcdClient(opts)
	if err != nil {
		return err
	}
	states, err := client.States(cmd.Context())
	if err != nil {
		return err
	}
	healthy := true
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tROLE\tHEALTHY\tLEADER\tBEHIND\tSIZE\tIN USE\tVERSION")
	last := etcdmember.LastIndex(states)
	for _, m := range states {
		problem := m.Problem()
		healthy = healthy && problem == ""
		if problem != "" {
			fmt.Fprintf(table, "%s\t%s\tno: %s\t\t\t\t\t\n", m.Name, m.Role(), problem)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\tyes\t%t\t%d\t%d\t%d\t%s\n",
			m.Name, m.Role(), m.Leader == m.ID, last-m.Index, m.Size, m.InUse, m.Version)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if !healthy {
		return errUnhealthy
	}
	return nil
}

// defragmentTimeout is the maximum time to defragment one member.
const defragmentTimeout = 2 * time.Minute

func defragment(cmd *cobra.Command, opts *options) error {
	client, err := etcdClient(opts)
	if err != nil {
		return err
	}
	states, err := client.States(cmd.Context())
	if err != nil {
		return err
	}
	for _, m := range states {
		if m.Err != nil {
			return fmt.Errorf("defragment member %q: %w", m.Name, m.Err)
		}
		if err := defragmentMember(cmd.Context(), client, m.ClientURL); err != nil {
			return fmt.Errorf("defragment member %q: %w", m.Name, err)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), etcdTimeout)
		after, err := client.Status(ctx, m.ClientURL)
		cancel()
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %d bytes before, %d bytes now\n", m.Name, m.Size, after.Size)
	}
	return nil
}

func defragmentMember(ctx context.Context, client etcdmember.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, defragmentTimeout)
	defer cancel()
	return client.Defragment(ctx, url)
}
