package rsync

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// local is a forwarder for tests. It does not forward the port, because the tests use this machine
// as the container.
func local(_ context.Context, port int, use func(int) error) error { return use(port) }

func TestDaemonCopiesBothWays(t *testing.T) {
	work := t.TempDir()
	s := &sync{in: container(work), forward: local, remove: true, filter: filter{exclude: []string{"*.log"}}, IOStreams: genericiooptions.IOStreams{Out: t.Output(), ErrOut: t.Output()}}
	from := write(t, t.TempDir(), map[string]string{"a b": "1", "sub/b": "2", "link": "-> /etc/passwd", "c.log": "3"})
	want := map[string]string{"a b": "1", "sub/": "", "sub/b": "2", "link": "-> /etc/passwd"}
	write(t, filepath.Join(work, "there"), map[string]string{"old": "0"})
	s.from, s.to = place{path: from + "/"}, place{"web", "there"}
	if err := s.byDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, tree(t, filepath.Join(work, "there"))); diff != "" {
		t.Errorf("in the container (-want +got):\n%s", diff)
	}
	back := write(t, t.TempDir(), map[string]string{"old": "0"})
	s.from, s.to = place{"web", filepath.Join(work, "there") + "/"}, place{path: back}
	if err := s.byDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, tree(t, back)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestDaemonNeedsPasswordAndEnds(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	text := &strings.Builder{}
	s := &sync{in: container(t.TempDir()), IOStreams: genericiooptions.IOStreams{Out: t.Output(), ErrOut: text}}
	address, errUsed := "", errors.New("used")
	err := s.withDaemon(t.Context(), func(d daemon) error {
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(d.port))
		if err := s.rsync(t.Context(), []string{"RSYNC_PASSWORD=guessed"}, []string{d.address(place{"web", "/"}, d.port)}); err == nil {
			t.Error("the daemon accepts another password")
		}
		return errUsed
	})
	if !errors.Is(err, errUsed) || !strings.Contains(text.String(), "auth failed") {
		t.Errorf("the use ends with %v; rsync printed %s", err, text)
	}
	if connection, err := net.Dial("tcp", address); err == nil {
		connection.Close()
		t.Error("the daemon still runs")
	}
	if entries, err := os.ReadDir(temporary); err != nil || len(entries) > 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

func TestDaemonStartFailureIsReported(t *testing.T) {
	s := &sync{in: container(t.TempDir()), IOStreams: genericiooptions.IOStreams{Out: t.Output(), ErrOut: t.Output()}}
	t.Setenv("TMPDIR", "/nonexistent")
	if err := s.withDaemon(t.Context(), func(daemon) error { return nil }); err == nil || !strings.Contains(err.Error(), "start an rsync daemon") {
		t.Errorf("it starts without a directory: %v", err)
	}
	s.in = func(context.Context, []string, genericiooptions.IOStreams) error { return nil }
	if err := s.withDaemon(t.Context(), func(daemon) error { return nil }); err == nil {
		t.Error("a container without output has a daemon")
	}
	for _, line := range []string{"", "1", "x /", "1 relative"} {
		if err := (&daemon{}).read(line); err == nil {
			t.Errorf("%q is a daemon", line)
		}
	}
}
