package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/etcdmember"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/supervisor"
)

// resetTimeout is the maximum time to wait until the control plane serves requests after a reset.
const resetTimeout = 3 * time.Minute

// resetCommand returns the command that reduces etcd to a single member, on this master.
func resetCommand(opts *options) *cobra.Command {
	var yes, force bool
	command := &cobra.Command{
		Use:   "reset",
		Short: "Continue with the data of this master alone, after most masters are permanently lost",
		Long: "Continue with the data of this master alone, if etcd has no majority because most masters are permanently lost. Pods\n" +
			"continue to run. This master removes all others from etcd, so that they can't return with their old data: run\n" +
			"`slipway down --purge` on them, delete their nodes, and let them join again as new masters.\n\n" +
			"Writes that only the lost masters stored are lost. If two lost masters can't reach this one, never start both again:\n" +
			"together, they are a majority of the previous cluster.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.loadMaster()
			if err != nil {
				return err
			}
			lost, err := h.LostMembers(cmd.Context(), force)
			if err != nil {
				return fmt.Errorf("reset etcd: %w", err)
			}
			question := fmt.Sprintf("Remove %s from etcd permanently, and continue with the data of %s?", memberNames(lost), h.Node.NodeName)
			if err := confirm(cmd.InOrStdin(), cmd.ErrOrStderr(), yes, question); err != nil {
				return fmt.Errorf("reset etcd: %w", err)
			}
			return resetEtcd(cmd.Context(), opts, h, lost, cmd.OutOrStdout())
		},
	}
	command.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	command.Flags().BoolVar(&force, "force", false, "continue alone even if another member responds; first stop Slipway there")
	return command
}

// confirm prints a question and returns an error unless the next line of in is "yes". If yes is
// true, confirm does nothing.
func confirm(in io.Reader, out io.Writer, yes bool, question string) error {
	if yes {
		return nil
	}
	fmt.Fprintf(out, "%s Type yes: ", question)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read confirmation: %w", err)
	}
	if strings.TrimSpace(line) != "yes" {
		return errors.New("not confirmed: nothing was changed; type yes, or use --yes")
	}
	return nil
}

// memberNames returns the names of members. If a member has never started, it has no name, and
// memberNames returns its address instead.
func memberNames(members []etcdmember.Member) string {
	var names []string
	for _, m := range members {
		name := m.Name
		if name == "" {
			name = m.PeerURL
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// resetEtcd records that etcd must be reset. The control plane performs the reset when it starts,
// so resetEtcd restarts it if it is running.
func resetEtcd(ctx context.Context, opts *options, h *host.Host, lost []etcdmember.Member, out io.Writer) error {
	if err := h.ResetEtcd(); err != nil {
		return err
	}
	err := supervisor.NewClient(h.Socket()).Restart(ctx, host.ControlPlane)
	if errors.Is(err, supervisor.ErrNotRunning) {
		fmt.Fprintln(out, "etcd continues alone at the next start: run `slipway up`.")
		return nil
	}
	if err != nil {
		return err
	}
	if err := waitReset(ctx, opts, h); err != nil {
		return err
	}
	fmt.Fprintf(out, "etcd continues with the data of %s alone.\n", h.Node.NodeName)
	if len(lost) > 0 {
		fmt.Fprintf(out, "Delete the nodes of lost masters, such as: oc delete node %s\nThen let new masters join.\n", strings.ReplaceAll(memberNames(lost), ",", ""))
	}
	return nil
}

// waitReset waits until the control plane has completed the reset and all components are ready.
func waitReset(ctx context.Context, opts *options, h *host.Host) error {
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	client := supervisor.NewClient(h.Socket())
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("reset etcd: the control plane was not ready after %s; see `slipway status` and `slipway logs control-plane`", resetTimeout)
		case <-ticker.C:
		}
		current, err := opts.load()
		if err != nil || current.EtcdResetPending() {
			continue
		}
		if status, err := client.Status(ctx); err == nil && status.Ready {
			return nil
		}
	}
}
