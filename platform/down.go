package platform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/network/agent"
	"github.com/slipway-platform/slipway/node/containerd"
	"github.com/slipway-platform/slipway/node/teardown"
	"github.com/slipway-platform/slipway/router/haproxy"
	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/storage/local"
)

// podGrace is how long a pod may take to end when the whole host goes down.
const podGrace = 10 * time.Second

// stopTimeout is how long the supervisor may take to stop its processes before `down` ends them.
const stopTimeout = time.Minute

func downCommand(opts *options) *cobra.Command {
	var purge bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Stop everything, pods included, and leave nothing behind on this host but the data",
		Long: "Stop the cluster and its pods and remove every process, mount, network device, firewall table and\n" +
			"control group of it. The objects and the volumes' data stay for the next `slipway up`; with --purge the\n" +
			"data directory goes too. It can be repeated, and it cleans up after a crash as well.",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return down(ctx, opts, purge, os.Stderr)
		},
	}
	command.Flags().BoolVar(&purge, "purge", false, "remove the data directory too: every object, image and key of this cluster")
	return command
}

// down stops the host. Every step is taken whatever became of those before it, and all problems are
// reported.
func down(ctx context.Context, opts *options, purge bool, out io.Writer) error {
	if _, err := os.Stat(opts.dataDir); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(out, "There is nothing at %s.\n", opts.dataDir)
		return nil
	}
	h, err := opts.load()
	if err != nil {
		return err
	}
	began := time.Now()
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"processes stopped", h.stopSupervisor},
		{"pods stopped, volumes released", h.releasePods},
		{"leftover processes ended", func(ctx context.Context) error {
			return errors.Join(haproxy.EndLeft(h.routerDir()), teardown.Processes(ctx, h.dataDir, h.Node.Slipway.CgroupRoot))
		}},
		{"network removed", h.removeNetwork},
		{"mounts removed", func(context.Context) error {
			return errors.Join(
				teardown.Mounts(h.Node.VolumeDirectory, h.Node.Slipway.ContainerdDirectory, h.runDir()),
				local.Release(h.Node.Slipway.LocalStorage.Directory))
		}},
		{"control groups removed", func(context.Context) error { return teardown.Cgroups(h.Node.Slipway.CgroupRoot) }},
		{"state of this boot removed", h.removeState},
	}
	var problems []error
	for _, step := range steps {
		if err := step.do(ctx); err != nil {
			problems = append(problems, err)
			continue
		}
		fmt.Fprintf(out, "%5.1fs  %s\n", time.Since(began).Seconds(), step.what)
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("not everything could be removed:\n%w\nmend what is named and run `slipway down` again", err)
	}
	if !purge {
		return nil
	}
	if err := h.purge(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%5.1fs  data removed\n", time.Since(began).Seconds())
	return nil
}

// stopSupervisor asks the supervisor to stop and waits until it has let go of the data directory.
func (h *host) stopSupervisor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	ask := newClient(h.socket())
	if err := ask.stop(ctx); err != nil && !errors.Is(err, errNotRunning) {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		lock, err := h.lock()
		if err == nil {
			return lock.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stop supervisor: %w", err)
		case <-tick.C:
		}
	}
}

// releasePods ends the pods in an orderly way, which needs a containerd, and then hands FlexVolumes
// back to their drivers. A host on which no container was ever started needs neither.
func (h *host) releasePods(ctx context.Context) error {
	if _, err := os.Stat(h.containerdState()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	problem := h.withContainerd(ctx, func(ctx context.Context) error {
		return teardown.Pods(ctx, h.containerdSocket(), podGrace)
	})
	release := flexvolume.Release{
		KubeletRoot: h.Node.VolumeDirectory, PluginDir: h.Node.VolumePluginDir(), KeepDir: h.keptDrivers(nodeName),
	}
	return errors.Join(problem, release.All(ctx))
}

// withContainerd runs a containerd of its own for as long as do takes.
func (h *host) withContainerd(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	runtime, err := h.runtime()
	if err != nil {
		return err
	}
	command, err := runtime.Command(ctx)
	if err != nil {
		return err
	}
	log, err := openLog(h.logFile(containerdName))
	if err != nil {
		return err
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return fmt.Errorf("start containerd: %w", err)
	}
	err = runtime.WaitReady(ctx)
	if err == nil {
		err = do(ctx)
	}
	if signalErr := command.Process.Signal(syscall.SIGTERM); signalErr != nil {
		return errors.Join(err, signalErr)
	}
	// It was asked to end: how it did is no news.
	_ = command.Wait()
	return err
}

func (h *host) removeNetwork(ctx context.Context) error {
	return agent.Cleanup(ctx, agent.CleanupConfig{
		Bridge:    h.Node.Slipway.Bridge,
		Devices:   []string{h.Node.Slipway.DNSDevice, offlineDevice},
		NFTTable:  h.Node.Slipway.NFTTable,
		IdleTable: h.idleTable(),
		NetnsDir:  filepath.Join(h.containerdState(), "netns"),
	})
}

// removeState removes what is true of this boot only.
func (h *host) removeState(context.Context) error {
	return errors.Join(os.RemoveAll(containerd.Runtime{State: h.containerdState()}.ShimSocketDir()), os.RemoveAll(h.runDir()))
}

// purge removes everything that this host keeps, also where the configuration puts it outside the data
// directory.
func (h *host) purge() error {
	var problems []error
	for _, dir := range []string{
		h.Node.Slipway.LocalStorage.Directory, h.Node.VolumeDirectory, h.Node.Slipway.ContainerdDirectory, h.Master.EtcdDirectory(), h.runDir(), h.dataDir,
	} {
		if err := os.RemoveAll(dir); err != nil {
			problems = append(problems, fmt.Errorf("remove data: %w", err))
		}
	}
	return errors.Join(problems...)
}
