package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/platform/preflight"
)

func runCommand(opts *options) *cobra.Command {
	var checked bool
	command := &cobra.Command{
		Use:   "run",
		Short: "Run the cluster in the foreground, for systemd or a container",
		Long: "Run the cluster in the foreground until SIGTERM or SIGINT. Pods go on running when it ends and are\n" +
			"adopted by the next start; `slipway down` ends them too. Tells systemd when everything is ready.",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return run(ctx, opts, checked)
		},
	}
	command.Flags().BoolVar(&checked, checkedFlag, false, "the machine has just been checked")
	_ = command.Flags().MarkHidden(checkedFlag) // it exists
	return command
}

// checkedFlag is how `slipway up` tells the supervisor that it has done the preflight check.
const checkedFlag = "checked"

func run(ctx context.Context, opts *options, checked bool) error {
	setLogOutput(os.Stderr)
	if opts.file == "" {
		if err := config.WriteDefaults(opts.dataDir); err != nil {
			return err
		}
	}
	h, err := opts.load()
	if err != nil {
		return err
	}
	lock, err := h.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if !checked {
		if err := h.preflight(ctx, os.Stderr); err != nil {
			return err
		}
	}
	h.logIgnored()
	protectFromOOM()
	if err := preflight.Raise("/", preflight.Limits()); err != nil {
		slog.Warn("a limit of the kernel stays low", "error", err)
	}
	for ctx.Err() == nil {
		err := h.runUntilMoved(ctx)
		if errors.Is(err, errStopped) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// runUntilMoved runs the host until ctx ends or the machine's address changes. Then it returns, and
// everything is started anew with certificates and a node for the new address; pods go on meanwhile.
func (h *host) runUntilMoved(ctx context.Context) error {
	if err := h.prepare(); err != nil {
		return err
	}
	processes, err := h.processes()
	if err != nil {
		return err
	}
	if err := h.createGroups(processes); err != nil {
		return err
	}
	logs := []string{h.logFile(supervisorName)}
	for _, p := range processes {
		logs = append(logs, p.logFile)
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { keepLogsSmall(ctx, logs) })
	group.Go(func() { h.watchAddress(ctx, cancel) })
	// The control plane starts meanwhile; containerd and the node wait for it.
	var unpackErr error
	group.Go(func() {
		if _, unpackErr = h.programs(); unpackErr != nil {
			cancel()
		}
	})
	err = newSupervisor(version.Slipway(), h.dataDir, h.socket(), processes).Run(ctx)
	cancel()
	group.Wait()
	if unpackErr != nil {
		return unpackErr
	}
	return err
}

// addressCheckPeriod is how often the machine's address is looked at.
const addressCheckPeriod = 5 * time.Second

// watchAddress calls moved when the machine has had another address than at the start for two looks in
// a row. A machine that has lost its address keeps the old one until it has a new one.
func (h *host) watchAddress(ctx context.Context, moved func()) {
	tick := time.NewTicker(addressCheckPeriod)
	defer tick.Stop()
	different := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := hostaddr.HostAddress(h.Node.NodeIP, h.ownDevices()...)
		if err != nil || now == h.address {
			different = 0
			continue
		}
		if different++; different == 2 {
			slog.Warn("the machine's address has changed; everything is started anew for it", "old", h.address, "new", now)
			moved()
			return
		}
	}
}

// letThrough lets other users enter the directories above the containers' root file systems, and no more: the root of a pod with users of its
// own is one of them. What they may not see in these directories is closed to them itself.
func (h *host) letThrough() error {
	for _, dir := range []string{h.dataDir, h.runDir()} {
		info, err := os.Stat(dir)
		if err == nil {
			err = os.Chmod(dir, info.Mode().Perm()|0o111)
		}
		if err != nil {
			return fmt.Errorf("let containers enter their directories: %w", err)
		}
	}
	return nil
}

// lock makes this the only supervisor of the data directory, until the file is closed or the process
// ends in whatever way.
func (h *host) lock() (*os.File, error) {
	if err := os.MkdirAll(h.runDir(), 0o700); err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	if err := h.letThrough(); err != nil {
		return nil, err
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
