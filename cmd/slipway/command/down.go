package command

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

	"github.com/containernetworking/cni/libcni"
	"github.com/spf13/cobra"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/slipway-platform/slipway/cmd/slipway/installation"
	"github.com/slipway-platform/slipway/network/agent"
	"github.com/slipway-platform/slipway/node/containerd"
	"github.com/slipway-platform/slipway/node/teardown"
	"github.com/slipway-platform/slipway/platform"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/router/haproxy"
	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/storage/local"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/logfile"
)

// podStopTimeout is the time after which a pod that is still stopping is killed.
const podStopTimeout = 10 * time.Second

// stopTimeout is the maximum time to wait until the supervisor has stopped its processes.
const stopTimeout = time.Minute

func downCommand(opts *options) *cobra.Command {
	var purge bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Stop everything including pods, and remove everything on this host except the data",
		Long: "Stop the cluster and its pods and remove all its processes, mounts, network devices, firewall tables and\n" +
			"cgroups. Objects and the data of volumes are kept for the next `slipway up`. With --purge, the command also\n" +
			"removes the data directory, the files of `slipway up --link` and `slipway install`, and the rules of\n" +
			"administrators in the iptables chain OPENSHIFT-ADMIN-OUTPUT-RULES. You can repeat the command, and use\n" +
			"it after a crash.",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return down(ctx, opts, purge, os.Stderr)
		},
	}
	command.Flags().BoolVar(&purge, "purge", false, "also remove the data directory: every object, image and key of this cluster")
	return command
}

// down stops the host and cleans up the machine. If a step fails, down continues with the next
// step, and returns all errors at the end.
func down(ctx context.Context, opts *options, purge bool, out io.Writer) error {
	if _, err := os.Stat(opts.dataDir); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(out, "%s does not exist.\n", opts.dataDir)
		return nil
	}
	host, err := opts.load()
	if err != nil {
		return err
	}
	h := teardownHost{host, out}
	start := time.Now()
	steps := []struct {
		result string
		run    func(context.Context) error
	}{
		{"processes stopped", h.stopSupervisor},
		{"pods stopped, volumes released", h.releasePods},
		{"remaining processes ended", func(ctx context.Context) error {
			return errors.Join(haproxy.EndOrphans(h.RouterDir()), teardown.Processes(ctx, h.DataDir, h.Node.Slipway.CgroupRoot))
		}},
		{"network removed", func(ctx context.Context) error { return h.removeNetwork(ctx, purge) }},
		{"mounts removed", func(context.Context) error {
			releaseErr := local.Release(h.Node.Slipway.LocalStorage.Directory, h.Node.VolumeDirectory)
			detached, err := teardown.Mounts(h.Node.VolumeDirectory, h.Node.Slipway.ContainerdDirectory, h.RunDir())
			h.warn(detached)
			return errors.Join(releaseErr, err)
		}},
		{"cgroups removed", func(context.Context) error { return teardown.Cgroups(h.Node.Slipway.CgroupRoot) }},
		{"state of this boot removed", h.removeState},
	}
	var errs []error
	for _, step := range steps {
		if err := step.run(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(out, "%5.1fs  %s\n", time.Since(start).Seconds(), step.result)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("not everything could be removed:\n%w\nfix these problems and run `slipway down` again", err)
	}
	if !purge {
		return nil
	}
	_, err = installation.Host().Remove(ctx, h.DataDir)
	if err := errors.Join(err, removeLinks(h.DataDir), h.purge()); err != nil {
		return err
	}
	fmt.Fprintf(out, "%5.1fs  data removed\n", time.Since(start).Seconds())
	return nil
}

// teardownHost cleans up the machine after a host has stopped. It writes warnings to out.
type teardownHost struct {
	*host.Host
	out io.Writer
}

// stopSupervisor sends the supervisor a stop request, and waits until the supervisor releases its
// lock. It first stops the systemd service, so that systemd does not restart the supervisor.
func (h teardownHost) stopSupervisor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	machine := installation.Host()
	installed, err := machine.Installed(h.DataDir)
	if err == nil && installed {
		err = machine.Systemctl(ctx, "stop", installation.Service)
	}
	if err != nil {
		return err
	}
	client := supervisor.NewClient(h.Socket())
	if err := client.Stop(ctx); err != nil && !errors.Is(err, supervisor.ErrNotRunning) {
		return err
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		lock, err := supervisor.Lock(h.DataDir, h.RunDir())
		if err == nil {
			return lock.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stop supervisor: %w", err)
		case <-ticker.C:
		}
	}
}

// releasePods stops the pods and then unmounts and detaches FlexVolumes. It runs containerd to stop
// the pods. It does nothing if no container has ever run on this host.
func (h teardownHost) releasePods(ctx context.Context) error {
	if _, err := os.Stat(h.ContainerdState()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	podsErr := h.withContainerd(ctx, func(ctx context.Context) error {
		return teardown.Pods(ctx, h.ContainerdSocket(), podStopTimeout)
	})
	release := flexvolume.Release{
		KubeletRoot: h.Node.VolumeDirectory, PluginDir: h.Node.VolumePluginDir(), KeepDir: h.DriverCopies(host.Node),
	}
	warnings, err := release.All(ctx)
	h.warn(warnings)
	return errors.Join(podsErr, err)
}

func (h teardownHost) warn(warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintln(h.out, "warning:", warning)
	}
}

// withContainerd starts containerd, calls do, and stops containerd.
func (h teardownHost) withContainerd(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	runtime, err := platform.Runtime(h.Host)
	if err != nil {
		return err
	}
	command, err := runtime.Command(ctx)
	if err != nil {
		return err
	}
	log, err := logfile.Open(h.LogFile(host.Containerd))
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
	_ = command.Wait() // the error only reports that the signal stopped containerd
	return err
}

// removeNetwork removes the network. If purge is false, it keeps the administrators' iptables
// rules.
func (h teardownHost) removeNetwork(ctx context.Context, purge bool) error {
	return agent.Cleanup(ctx, agent.CleanupConfig{
		Bridge:     h.Node.Slipway.Bridge,
		Devices:    []string{h.Node.Slipway.DNSDevice, h.Node.Slipway.VXLANDevice, host.OfflineDevice},
		NFTTable:   h.Node.Slipway.NFTTable,
		Tables:     []string{h.IdleTable(), h.PolicyTable()},
		AdminRules: purge, SysctlRecord: h.SysctlRecord(),
		NetnsDir: filepath.Join(h.ContainerdState(), "netns"),
	})
}

// removeState removes the state that is valid only until the next reboot.
func (h teardownHost) removeState(context.Context) error {
	return errors.Join(os.RemoveAll(containerd.Runtime{State: h.ContainerdState()}.ShimSocketDir()), os.RemoveAll(h.RunDir()))
}

// purge removes all of this host's data, including data outside the data directory.
func (h teardownHost) purge() error {
	errs := []error{
		teardown.DevicePlugins(pluginapi.DevicePluginPath), teardown.ContainerLogs(teardown.ContainerLogsDir, h.Node.VolumeDirectory),
		teardown.RemoveEmpty(filepath.Join(libcni.CacheDir, "results"), libcni.CacheDir),
	}
	for _, dir := range []string{
		h.Node.Slipway.LocalStorage.Directory, h.Node.VolumeDirectory, h.Node.Slipway.ContainerdDirectory, h.Master.EtcdDirectory(), h.RunDir(), h.DataDir,
	} {
		if err := os.RemoveAll(dir); err != nil {
			errs = append(errs, fmt.Errorf("remove data: %w", err))
		}
	}
	return errors.Join(errs...)
}
