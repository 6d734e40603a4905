// Command slipway-supervisor starts a host's processes, restarts those that exit, and serves their
// status. It is a small, separate program because it runs as long as the host does. `slipway run`
// executes it with a plan; see package plan.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/slipway-platform/slipway/internal/redact"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/node/containerd"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/logfile"
	"github.com/slipway-platform/slipway/supervisor/plan"
)

func main() {
	log.SetOutput(redact.Writer(os.Stderr))
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "slipway-supervisor: the first argument must be a plan file; to start a host, run: slipway run")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "slipway-supervisor:", err)
		os.Exit(1)
	}
}

// run runs a plan's processes until it receives SIGTERM, SIGINT or a client's stop request. If the
// machine's address changes, it executes the command that creates a new plan.
func run(file string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	p, lock, err := plan.Read(file)
	if err != nil {
		return err
	}
	defer lock.Close()
	logs := []string{p.Log}
	for i := range p.Processes {
		logs = append(logs, p.Processes[i].LogFile)
		if p.Processes[i].Name == p.Containerd {
			p.Processes[i].WaitReady = containerd.Runtime{Socket: p.ContainerdSocket}.WaitReady
		}
	}
	addressCtx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { logfile.RotateAll(addressCtx, logs) })
	var moved bool
	group.Go(func() {
		current := hostaddr.Addresses{First: p.Address, Second: p.SecondAddress, DualStack: p.DualStack}
		next, changed := hostaddr.Wait(addressCtx, current, p.NodeIP, p.IgnoredDevices...)
		if moved = changed; moved {
			slog.Warn("the host's address changed; restarting all processes", "old", current, "new", next)
			cancel()
		}
	})
	err = supervisor.New(p.Version, p.DataDir, p.Socket, p.Processes).Run(addressCtx)
	cancel()
	group.Wait()
	switch {
	case errors.Is(err, supervisor.ErrStopped):
		return nil
	case err != nil:
		return err
	case moved && ctx.Err() == nil:
		return plan.Execute(p.Restart)
	}
	return nil
}
