package platform

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
)

// A start that has not come to an end by then is called failed; a first start on a slow disk takes
// half a minute.
const startTimeout = 5 * time.Minute

// givesUpAfter is how often a process may end during a start before the start is called failed.
const givesUpAfter = 3

func upCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:     "up",
		Short:   "Start the cluster on this host, in the background, and wait until it is ready",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return up(cmd.Context(), opts, os.Stderr)
		},
	}
}

func up(ctx context.Context, opts *options, out *os.File) error {
	h, err := opts.load()
	if err != nil {
		return err
	}
	show := newProgress(out, time.Now())
	ask := newClient(h.socket())
	status, err := ask.status(ctx)
	switch {
	case err == nil && status.Ready:
		fmt.Fprintf(out, "Slipway runs already, since %s.\n\n", status.Started.Format(time.DateTime))
		h.nextSteps(out, show.terminal)
		return nil
	case err == nil:
		show.say("it is being started already")
		return watch(ctx, h, ask, show, nil)
	case !errors.Is(err, errNotRunning):
		return err
	}
	if err := h.preflight(ctx, out); err != nil {
		return err
	}
	ended, err := spawn(h, opts)
	if err != nil {
		return err
	}
	show.say("supervisor started, log %s", h.logFile("slipway"))
	return watch(ctx, h, ask, show, ended)
}

// spawn starts `slipway run` in a session of its own, so that it outlives this terminal. The channel
// is closed when it ends.
func spawn(h *host, opts *options) (<-chan struct{}, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	log, err := openLog(h.logFile("slipway"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := []string{"run", "--" + checkedFlag, "--data-dir", h.dataDir}
	if opts.file != "" {
		file, err := filepath.Abs(opts.file)
		if err != nil {
			return nil, fmt.Errorf("find configuration file: %w", err)
		}
		args = append(args, "--config", file)
	}
	command := exec.Command(self, args...)
	command.Stdout, command.Stderr = log, log
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = command.Wait() }()
	return ended, nil
}

// watch shows the progress until everything is ready or the start has failed; then it stops what runs
// and says which part failed, with its last log lines.
func watch(ctx context.Context, h *host, ask *client, show *progress, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var status Status
	for {
		select {
		case <-ended:
			return failed(show.out, "the supervisor ended", h.logFile("slipway"))
		case <-ctx.Done():
			_ = ask.stop(context.WithoutCancel(ctx))
			part, process := slowest(status)
			return failed(show.out, fmt.Sprintf("%s was not ready in time", part), h.logFile(process))
		case <-tick.C:
		}
		current, err := ask.status(ctx)
		if err != nil {
			continue // it does not listen yet, or has just ended, which `ended` tells
		}
		status = current
		show.show(status)
		if status.Ready {
			show.say("ready\n")
			h.nextSteps(show.out, show.terminal)
			return nil
		}
		for _, process := range status.Processes {
			if process.Restarts < givesUpAfter {
				continue
			}
			if err := ask.stop(ctx); err != nil {
				return err
			}
			return failed(show.out, process.LastError, h.logFile(process.Name))
		}
	}
}

// slowest names a part that is not ready and its process.
func slowest(status Status) (part, process string) {
	for _, p := range status.Processes {
		for _, candidate := range p.Parts {
			if candidate.State == Starting || candidate.State == Failed {
				return candidate.Name, p.Name
			}
		}
	}
	return "the supervisor", "slipway"
}

// failed prints the end of a log and returns the error that names what failed.
func failed(out io.Writer, reason, log string) error {
	fmt.Fprintf(out, "\nlast lines of %s:\n", log)
	for _, line := range lastLines(log, 12) {
		fmt.Fprintf(out, "    %s\n", clip(line, 200))
	}
	fmt.Fprintln(out)
	return fmt.Errorf("start failed: %s", reason)
}
