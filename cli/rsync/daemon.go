package rsync

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"path"
	"strconv"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// daemonScript runs an rsync daemon in the container until standard input is closed, which also
// happens when the client is killed. The first line of standard input is the password of the user
// "oc", which prevents the pod's other containers from using the daemon. The arguments are ports,
// of which the script uses the first free port. When the daemon responds, the script prints the
// port and the working directory.
const daemonScript = `set -e
read -r password
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
(umask 077; printf 'oc:%s\n' "$password" >"$directory/secrets")
printf '%s\n' 'use chroot = no' 'munge symlinks = no' 'reverse lookup = no' \
	'[root]' 'path = /' 'read only = no' 'auth users = oc' "secrets file = $directory/secrets" >"$directory/config"
if [ "$(id -u)" = 0 ]; then printf '%s\n' 'uid = 0' 'gid = 0' >>"$directory/config"; fi
for port; do
	rsync --daemon --no-detach --config="$directory/config" --address=127.0.0.1 --port="$port" </dev/null >&2 &
	daemon=$!
	while kill -0 $daemon 2>/dev/null; do
		if rsync "rsync://127.0.0.1:$port/" >/dev/null 2>&1; then
			printf '%s %s\n' "$port" "$PWD"
			cat >/dev/null
			kill $daemon
			wait $daemon || true
			exit 0
		fi
		sleep 0.1 2>/dev/null || sleep 1
	done
done
echo 'no rsync daemon could be started' >&2
exit 1`

// daemon describes an rsync daemon in the container. port is on the container's loopback interface.
// directory is the working directory, to which relative paths refer. password is the password of
// the user "oc".
type daemon struct {
	port                int
	directory, password string
}

// forwarder forwards a port on this machine's loopback interface to a pod's port. It calls use with
// the local port, and forwards connections until use returns.
type forwarder func(ctx context.Context, port int, use func(local int) error) error

// byDaemon copies files with a temporary rsync daemon in the container, through a forwarded port.
func (s *sync) byDaemon(ctx context.Context) error {
	return s.withDaemon(ctx, func(d daemon) error {
		return s.forward(ctx, d.port, func(local int) error {
			return s.rsync(ctx, []string{"RSYNC_PASSWORD=" + d.password}, s.arguments(d.address(s.from, local), d.address(s.to, local)))
		})
	})
}

// withDaemon starts a daemon, calls use, and then stops the daemon.
func (s *sync) withDaemon(ctx context.Context, use func(daemon) error) (err error) {
	d := daemon{password: rand.Text()}
	command := []string{"sh", "-c", daemonScript, "rsync-daemon"}
	for range 8 {
		// Choose ports below the ephemeral port range, because outgoing connections do not use
		// them.
		command = append(command, strconv.Itoa(20000+mathrand.IntN(10000)))
	}
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := s.in(ctx, command, genericiooptions.IOStreams{In: in, Out: out, ErrOut: s.ErrOut})
		in.Close()
		out.CloseWithError(err)
		done <- err
	}()
	defer func() {
		stdin.Close()
		_, _ = io.Copy(io.Discard, stdout) // withDaemon returns the script's error
		if end := <-done; end != nil && err == nil {
			err = fmt.Errorf("stop the rsync daemon in the container: %w", end)
		}
	}()
	// If this write fails, the script prints no line, and ReadSlice fails.
	_, _ = io.WriteString(stdin, d.password+"\n")
	line, err := bufio.NewReaderSize(stdout, 8192).ReadSlice('\n')
	if err == nil {
		err = d.read(strings.TrimSuffix(string(line), "\n"))
	}
	if err != nil {
		return fmt.Errorf("start an rsync daemon in the container: %w", err)
	}
	return use(d)
}

// read parses the line that the script prints.
func (d *daemon) read(line string) (err error) {
	port, directory, ok := strings.Cut(line, " ")
	if d.port, err = strconv.Atoi(port); err != nil || !ok || !path.IsAbs(directory) {
		return errors.New("the container did not report its port and directory")
	}
	d.directory = directory
	return nil
}

// address returns rsync's argument for a place: an rsync URL for a place in the pod, and the path
// otherwise.
func (d *daemon) address(p place, local int) string {
	if p.pod == "" {
		return p.path
	}
	name := p.path
	if !path.IsAbs(name) {
		name = d.directory + "/" + name
	}
	return fmt.Sprintf("rsync://oc@127.0.0.1:%d/root%s", local, name)
}
