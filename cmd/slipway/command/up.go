package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cmd/slipway/installation"
	"github.com/slipway-platform/slipway/platform"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
	"github.com/slipway-platform/slipway/supervisor/logfile"
)

// startTimeout is the maximum time to wait until the host has started. On a slow disk, the first
// start can take half a minute.
const startTimeout = 5 * time.Minute

// journal is the command that prints the supervisor's log if the supervisor runs as a systemd
// service.
const journal = "journalctl -u " + installation.Service

// maxRestarts is the number of restarts of a process after which the start is considered failed.
const maxRestarts = 3

func upCommand(opts *options) *cobra.Command {
	link := false
	join := joinFlags{}
	command := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster on this host, in the background, and wait until it is ready",
		Long: "Start the cluster on this host, in the background, and wait until it is ready. With --join, the host first joins the cluster of\n" +
			"a master; later starts need no flag. On a node that has joined already, --join finds its masters at another address, and a token\n" +
			"of `slipway token create --node` replaces expired certificates.",
		Example: "  slipway up\n" +
			"  slipway up --join https://master.example.com:8443 --token-file -",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := join.run(cmd.Context(), opts, cmd.InOrStdin(), os.Stderr); err != nil {
				return err
			}
			if err := up(cmd.Context(), opts, os.Stderr); err != nil || !link {
				return err
			}
			return offerLinks(opts.dataDir, os.Stderr)
		},
	}
	join.add(command.Flags())
	command.Flags().BoolVar(&link, "link", false, "in a terminal, offer once to link slipway and oc into "+linkDir)
	return command
}

func up(ctx context.Context, opts *options, out *os.File) error {
	h, err := opts.load()
	if err != nil {
		return err
	}
	progress := newProgress(out, time.Now())
	status, err := supervisorStatus(ctx, h)
	switch {
	case err == nil && status.Ready:
		fmt.Fprintf(out, "Slipway already runs, since %s.\n\n", status.Started.Format(time.DateTime))
		printNextSteps(out, h, progress.terminal)
		return nil
	case err == nil:
		progress.printf("another start is in progress")
		return watch(ctx, h, progress, nil)
	case !errors.Is(err, errNotRunning):
		return err
	}
	if err := errors.Join(h.CheckMember(), h.CheckVersion()); err != nil {
		return err
	}
	if err := h.Preflight(ctx, out); err != nil {
		return err
	}
	done, err := startSupervisor(ctx, h, opts)
	if err != nil {
		return err
	}
	progress.printf("supervisor started, log %s", supervisorLog(h))
	return watch(ctx, h, progress, done)
}

// startSupervisor starts the systemd service for this data directory. If the service is not
// installed, it starts a process, and returns a channel that is closed when the process exits. For
// the service, the channel is nil.
func startSupervisor(ctx context.Context, h *host.Host, opts *options) (<-chan struct{}, error) {
	machine := installation.Host()
	if installed, err := machine.Installed(h.DataDir); err != nil || !installed {
		return spawn(h, opts)
	}
	if err := machine.Systemctl(ctx, "start", "--no-block", installation.Service); err != nil {
		return nil, err
	}
	return nil, nil // no channel, because systemd restarts the service if it exits
}

// supervisorLog returns the location of the supervisor's log: a file, or the command that prints
// the journal if systemd started the supervisor.
func supervisorLog(h *host.Host) string {
	if logsToJournal(h) {
		return journal
	}
	return h.LogFile(host.Supervisor)
}

// spawn starts `slipway run` in the background. The returned channel is closed when the process
// exits.
func spawn(h *host.Host, opts *options) (<-chan struct{}, error) {
	done, err := detach(h, opts, h.LogFile(host.Supervisor), "run", "--"+platform.CheckedFlag)
	if err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	return done, nil
}

// detach runs this program in a new session, so that the process continues after the terminal is
// closed. The returned channel is closed when the process exits.
func detach(h *host.Host, opts *options, logFile string, args ...string) (<-chan struct{}, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	log, err := logfile.Open(logFile)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args = append(args, "--data-dir", h.DataDir)
	if opts.file != "" {
		file, err := filepath.Abs(opts.file)
		if err != nil {
			return nil, fmt.Errorf("find configuration file: %w", err)
		}
		args = append(args, "--config", file)
	}
	command := exec.Command(executable, args...)
	command.Stdout, command.Stderr = log, log
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = command.Wait() }()
	return done, nil
}

// watch shows the progress until all components are ready or the start has failed. On failure, it
// prints the last lines of the log and stops the supervisor, unless the supervisor has exited.
func watch(ctx context.Context, h *host.Host, progress *progress, done <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client := supervisor.NewClient(h.Socket())
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	var status supervisor.Status
	for {
		select {
		case <-done:
			return startFailure(progress.out, "the supervisor exited", h.LogFile(host.Supervisor))
		case <-ctx.Done():
			_ = client.Stop(context.WithoutCancel(ctx))
			name, process := slowest(status)
			return startFailure(progress.out, fmt.Sprintf("%s was not ready in time", name), h.LogFile(process))
		case <-ticker.C:
		}
		current, err := client.Status(ctx)
		if err != nil {
			continue // the supervisor is not listening yet, or has exited and closed done
		}
		status = current
		progress.show(status)
		if status.Ready {
			progress.keep()
			progress.printf("ready\n")
			printNextSteps(progress.out, h, progress.terminal)
			return nil
		}
		for _, process := range status.Processes {
			if process.Restarts < maxRestarts {
				continue
			}
			if err := client.Stop(ctx); err != nil {
				return err
			}
			return startFailure(progress.out, process.LastError, h.LogFile(process.Name))
		}
	}
}

// slowest returns a component that is still starting or has failed, and the component's process.
func slowest(status supervisor.Status) (name, process string) {
	for _, p := range status.Processes {
		for _, c := range p.Components {
			if c.State == component.Starting || c.State == component.Failed {
				return c.Name, p.Name
			}
		}
	}
	return "the supervisor", host.Supervisor
}

// startFailure prints the last lines of a log and returns the error for the failed start. The log
// of a systemd service is in the journal instead of a file, so startFailure prints the command that
// shows the journal.
func startFailure(out io.Writer, reason, log string) error {
	if _, err := os.Stat(log); err != nil {
		fmt.Fprintf(out, "\nTo see the log, run: %s\n\n", journal)
		return fmt.Errorf("start failed: %s", reason)
	}
	fmt.Fprintf(out, "\nlast lines of %s:\n", log)
	for _, line := range logfile.LastLines(log, 12) {
		fmt.Fprintf(out, "    %s\n", clip(line, 200))
	}
	fmt.Fprintln(out)
	return fmt.Errorf("start failed: %s", reason)
}
