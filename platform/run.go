package platform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/version"
)

func runCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the cluster in the foreground, for systemd or a container",
		Long: "Run the cluster in the foreground until SIGTERM or SIGINT. Pods go on running when it ends and are\n" +
			"adopted by the next start; `slipway down` ends them too. Tells systemd when everything is ready.",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return run(ctx, opts)
		},
	}
}

func run(ctx context.Context, opts *options) error {
	h, err := opts.load()
	if err != nil {
		return err
	}
	lock, err := h.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := h.preflight(ctx, os.Stderr); err != nil {
		return err
	}
	h.logIgnored()
	if err := h.prepare(); err != nil {
		return err
	}
	processes, err := h.processes()
	if err != nil {
		return err
	}
	logs := []string{h.logFile("slipway")}
	for _, p := range processes {
		logs = append(logs, p.logFile)
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { keepLogsSmall(ctx, logs) })
	err = newSupervisor(version.Slipway(), h.dataDir, h.socket(), processes).Run(ctx)
	cancel()
	group.Wait()
	return err
}

// lock makes this the only supervisor of the data directory, until the file is closed or the process
// ends in whatever way.
func (h *host) lock() (*os.File, error) {
	if err := os.MkdirAll(h.runDir(), 0o700); err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	file, err := os.OpenFile(h.runDir()+"/lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		file.Close()
		return nil, fmt.Errorf("another slipway runs with the data directory %q; see: slipway status", h.dataDir)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %q: %w", file.Name(), err)
	}
	return file, nil
}
