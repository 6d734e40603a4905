// Package rsync implements `oc rsync`, which copies directories to and from containers. If both
// this machine and the container have rsync, it runs rsync through `oc rsh` or with a daemon in the
// container. Otherwise, it uses tar.
//
// The package does not trust data from a container, and never writes files outside the destination
// directory.
//
// The flags follow OpenShift 3.11's client. A trailing slash has the same meaning as in rsync(1).
package rsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// sync holds the state of `oc rsync`.
type sync struct {
	genericiooptions.IOStreams
	in        inContainer
	forward   forwarder
	container string
	strategy  string
	from, to  place
	filter    filter

	remove, noPerms, progress, quiet, compress, watch bool
}

// inContainer runs a command in the container, and returns an error if the command fails.
type inContainer func(ctx context.Context, command []string, streams genericiooptions.IOStreams) error

// place is a directory in a container or, if pod is empty, on this machine.
type place struct{ pod, path string }

// New returns the `oc rsync` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	s := &sync{IOStreams: streams}
	command := &cobra.Command{
		Use:   "rsync SOURCE DESTINATION",
		Short: "Copy files between a local file system and a pod",
		Long: `Copy a directory to or from the container of a pod. Either the source or the destination is POD:PATH.

As with rsync, a source with a trailing slash is the content of the directory, and a source without one is the directory
itself. If one side has no rsync, the command uses tar, which the container must have, and copies all files
each time.`,
		Example: `  oc rsync ./html/ web-1-x7k2p:/var/www
  oc rsync web-1-x7k2p:/var/log ./logs --exclude='*.gz'
  oc rsync ./src/ web-1-x7k2p:/opt/app-root/src --delete --watch`,
		Args: cobra.ExactArgs(2),
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(s.read(args))
			namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
			util.CheckErr(err)
			pod := pod{namespace: namespace, name: s.from.pod + s.to.pod, container: s.container}
			s.in, s.forward, err = pod.connect(command.Context(), factory)
			util.CheckErr(err)
			util.CheckErr(s.run(command.Context(), remoteShell(namespace, s.container, command)))
		},
	}
	flags := command.Flags()
	util.AddContainerVarFlags(command, &s.container, "")
	flags.StringVar(&s.strategy, "strategy", "", "How to copy: rsync, rsync-daemon (a daemon in the container and a forwarded port), or tar. The default is rsync if both sides have it.")
	flags.StringArrayVar(&s.filter.exclude, "exclude", nil, "Exclude files that match an rsync pattern.")
	flags.StringArrayVar(&s.filter.include, "include", nil, "Include files that match an rsync pattern.")
	flags.BoolVar(&s.remove, "delete", false, "Delete files that the source does not have.")
	flags.BoolVar(&s.noPerms, "no-perms", false, "Do not copy permissions.")
	flags.BoolVar(&s.progress, "progress", false, "Print copied files.")
	flags.BoolVarP(&s.quiet, "quiet", "q", false, "Print only errors.")
	flags.BoolVar(&s.compress, "compress", false, "Compress data, with rsync.")
	flags.BoolVarP(&s.watch, "watch", "w", false, "Copy again after each change in the local source.")
	return command
}

// read parses the source and destination, and validates the flags.
func (s *sync) read(args []string) error {
	s.from, s.to = readPlace(args[0]), readPlace(args[1])
	switch {
	case (s.from.pod == "") == (s.to.pod == ""):
		return errors.New("either the source or the destination must be POD:PATH, and the other a local path")
	case s.watch && s.from.pod != "":
		return errors.New("--watch needs a local source")
	case s.progress && s.quiet:
		return errors.New("use only one of --progress and --quiet")
	case s.remove && s.from.base() == "" && path.Clean(s.to.path) == "/":
		return errors.New("--delete would delete everything in /; set a directory as the destination")
	case !slices.Contains([]string{"", "rsync", "rsync-daemon", "tar"}, s.strategy):
		return fmt.Errorf("parse --strategy %q: must be rsync, rsync-daemon or tar", s.strategy)
	}
	if err := s.filter.validate(); err != nil {
		return err
	}
	if s.from.pod != "" {
		return nil
	}
	info, err := os.Stat(s.from.path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("copy %q: not a directory", s.from.path)
	}
	return err
}

// readPlace parses PATH or POD:PATH. If there is a slash before the first colon, the text is a
// PATH.
func readPlace(text string) place {
	pod, name, ok := strings.Cut(text, ":")
	if !ok || strings.ContainsAny(pod, `/\`) {
		return place{path: text}
	}
	if name == "" {
		name = "./"
	}
	return place{pod, name}
}

// String returns the place as PATH or POD:PATH.
func (p place) String() string {
	if p.pod == "" {
		return p.path
	}
	return p.pod + ":" + p.path
}

// base returns the name that a source directory gets in the destination. It returns "" if only the
// content of the directory is copied.
func (p place) base() string {
	if name := path.Base(p.path); !strings.HasSuffix(p.path, "/") && name != "." && name != ".." {
		return name
	}
	return ""
}

// run copies files once and, if --watch is set, after each later change. shell is the command that
// rsync runs to connect to the container.
func (s *sync) run(ctx context.Context, shell []string) error {
	copy := func() error { return s.byTar(ctx) }
	byRsync, err := s.canRsync(ctx)
	switch {
	case err != nil && s.strategy != "":
		return err
	case err != nil && !s.quiet:
		fmt.Fprintf(s.ErrOut, "WARNING: cannot use rsync: %v; using tar\n", err)
	case s.strategy == "rsync-daemon":
		copy = func() error { return s.byDaemon(ctx) }
	case byRsync:
		copy = func() error { return s.byRsync(ctx, shell) }
	}
	if s.watch {
		return watch(ctx, s.from.path, copy, func(err error) { fmt.Fprintf(s.ErrOut, "WARNING: %v\n", err) })
	}
	return copy()
}

// canRsync reports whether rsync can be used. If not, its error contains the reason: either this
// machine or the container does not have rsync.
func (s *sync) canRsync(ctx context.Context) (bool, error) {
	if s.strategy == "tar" {
		return false, nil
	}
	if _, err := exec.LookPath("rsync"); err != nil {
		return false, errors.New("rsync is not installed here")
	}
	err := s.in(ctx, []string{"rsync", "--version"}, genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard})
	if err != nil && strings.Contains(err.Error(), "executable file not found") {
		return false, errors.New("rsync is not available in the container")
	}
	if err != nil {
		return false, fmt.Errorf("run rsync in the container: %w", err)
	}
	return true, nil
}

// byRsync copies files with rsync. rsync runs shell to connect to the container.
func (s *sync) byRsync(ctx context.Context, shell []string) error {
	return s.rsync(ctx, nil, s.arguments(s.from.String(), s.to.String(), "--blocking-io", "--rsh="+quote(shell)))
}

// quote quotes the words of a remote shell command, because rsync splits the command at spaces
// outside quotes.
func quote(words []string) string {
	var quoted []string
	for _, word := range words {
		quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", "''")+"'")
	}
	return strings.Join(quoted, " ")
}

// rsync runs rsync on this machine with additional environment variables.
func (s *sync) rsync(ctx context.Context, env, args []string) error {
	command := exec.CommandContext(ctx, "rsync", args...)
	command.Env = append(os.Environ(), env...)
	command.Stdin, command.Stdout, command.Stderr = s.In, s.Out, s.ErrOut
	if err := command.Run(); err != nil {
		return fmt.Errorf("copy with rsync: %w", err)
	}
	return nil
}

// arguments returns rsync's arguments. options contains the arguments for the connection to the
// container.
func (s *sync) arguments(from, to string, options ...string) []string {
	args := append(options, "--archive", "--omit-dir-times", "--numeric-ids", "--no-owner", "--no-group")
	if s.from.pod != "" {
		// The container chooses what it sends. If the user is root, rsync would also create its
		// devices, and its set-ID programs would be root's.
		args = append(args, "--no-D", "--chmod=ug-s")
	}
	enabled := s.rsyncFlags()
	for _, flag := range slices.Sorted(maps.Keys(enabled)) {
		if enabled[flag] {
			args = append(args, flag)
		}
	}
	for _, pattern := range s.filter.include {
		args = append(args, "--include="+pattern)
	}
	for _, pattern := range s.filter.exclude {
		args = append(args, "--exclude="+pattern)
	}
	return append(args, "--", from, to)
}

func (s *sync) rsyncFlags() map[string]bool {
	return map[string]bool{
		"--delete": s.remove, "--no-perms": s.noPerms, "--progress": s.progress, "--quiet": s.quiet, "--verbose": !s.quiet, "--compress": s.compress,
	}
}
