package command

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cmd/slipway/installation"
	"github.com/slipway-platform/slipway/internal/redact"
	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/platform"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/supervisor/logfile"
)

// supportLines is the maximum number of lines of each log in a support archive. The archive
// contains the last lines of each log.
const supportLines = 20_000

func supportCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "support FILE|DIRECTORY",
		Short: "Save an archive for diagnosing problems of this host",
		Long: "Save an archive of mode 0600 with the version, the status, the configuration and the logs of this host, facts about its\n" +
			"machine, and on a master the tables that `oc get` prints of all objects. It contains neither secrets nor the content of objects:\n" +
			"passwords and keys in text are redacted. Read it before you pass it on, because applications can log anything.\n\n" +
			"The command also works if the platform does not. The file problems.txt in the archive lists missing data. In a directory, the\n" +
			"archive's name contains the host and the time.",
		Example: "  slipway support /tmp",
		GroupID: "look",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.loadInvalid(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			now := time.Now().UTC()
			name := archiveName("slipway-support", h, now)
			path := archivePath(args[0], name)
			if err := writeSupport(cmd.Context(), h, path, name, now); err != nil {
				return fmt.Errorf("write archive %q: %w", path, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Saved %s. Read it before you pass it on.\n", path)
			return nil
		},
	}
}

// evidence is a file in a support archive.
type evidence struct {
	name string
	read func(ctx context.Context, out io.Writer) error
}

// writeSupport writes a host's support archive. folder is the directory inside the archive.
func writeSupport(ctx context.Context, h *host.Host, path, folder string, now time.Time) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	compressed := gzip.NewWriter(file)
	archive := tar.NewWriter(compressed)
	add := func(name, content string) error {
		content = redact.Text(content)
		header := &tar.Header{Name: folder + "/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: now}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := io.WriteString(archive, content)
		return err
	}
	var problems bytes.Buffer
	for _, e := range append(hostEvidence(h), clusterEvidence(ctx, h, &problems)...) {
		var content bytes.Buffer
		if err := e.read(ctx, &content); err != nil {
			fmt.Fprintf(&problems, "%s: %v\n", e.name, err)
		}
		if err := add(e.name, content.String()); err != nil {
			return err
		}
	}
	if err := add("problems.txt", problems.String()); err != nil {
		return err
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// hostEvidence returns the files of a support archive that describe this host.
func hostEvidence(h *host.Host) []evidence {
	list := []evidence{
		{"version.txt", func(_ context.Context, out io.Writer) error {
			_, err := fmt.Fprintf(out, "Slipway %s\nKubernetes %s\n", version.Slipway(), kube.Version())
			return err
		}},
		{"configuration.yaml", func(_ context.Context, out io.Writer) error {
			text, err := h.View()
			if err == nil {
				_, err = out.Write(text)
			}
			return err
		}},
		{"status.json", func(ctx context.Context, out io.Writer) error {
			status, err := supervisorStatus(ctx, h)
			if err != nil {
				return err
			}
			encoder := json.NewEncoder(out)
			encoder.SetIndent("", "  ")
			return encoder.Encode(hostStatus{Status: status, Nodes: clusterStatus(ctx, h), Stopped: stoppedOf(h), Snapshots: snapshotsOf(h)})
		}},
	}
	processes := []string{host.Supervisor}
	for _, process := range platform.Processes(h) {
		processes = append(processes, process.Name)
	}
	for _, process := range processes {
		list = append(list, evidence{"logs/" + process + ".log", func(ctx context.Context, out io.Writer) error {
			if process == host.Supervisor && logsToJournal(h) {
				return printJournal(ctx, out)
			}
			return logfile.Print(ctx, out, map[string]string{process: h.LogFile(process)}, logfile.Selection{Tail: supportLines}, false)
		}})
	}
	for _, path := range []string{
		"/etc/os-release", "/proc/version", "/proc/cmdline", "/proc/uptime", "/proc/loadavg", "/proc/meminfo", "/proc/cpuinfo", "/proc/self/mountinfo",
		"/proc/cgroups", "/proc/modules", "/proc/net/dev", "/proc/net/route", "/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io",
	} {
		list = append(list, evidence{"machine" + path, func(_ context.Context, out io.Writer) error {
			content, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil // some distributions and kernels lack the file
			}
			if err == nil {
				_, err = out.Write(content)
			}
			return err
		}})
	}
	return list
}

// printJournal prints the last lines of the service in systemd's journal.
func printJournal(ctx context.Context, out io.Writer) error {
	command := exec.CommandContext(ctx, "journalctl", "--unit="+installation.Service, "--no-pager", fmt.Sprintf("--lines=%d", supportLines))
	command.Stdout = out
	if err := command.Run(); err != nil {
		return fmt.Errorf("read systemd's journal: %w", err)
	}
	return nil
}
