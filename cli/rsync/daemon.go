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

// daemonScript runs an rsync daemon in the container until its input ends, be it that the client
// was killed. The first line of the input is the password of the user "oc", without whom other
// containers of the pod could write to this one; the arguments are ports, of which the first that
// is free is taken. When the daemon answers, the script writes the port and the working directory.
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

// daemon is an rsync daemon in the container: its port there, on the loopback interface, the
// directory that relative paths begin at, and the password of "oc".
type daemon struct {
	port                int
	directory, password string
}

// forwarder calls use with a port of this machine's loopback interface that leads to one of the
// pod's while use runs.
type forwarder func(ctx context.Context, port int, use func(local int) error) error

// byDaemon copies with an rsync daemon that runs in the container while it does.
func (s *sync) byDaemon(ctx context.Context) error {
	return s.withDaemon(ctx, func(d daemon) error {
		return s.forward(ctx, d.port, func(local int) error {
			return s.rsync(ctx, []string{"RSYNC_PASSWORD=" + d.password}, s.arguments(d.address(s.from, local), d.address(s.to, local)))
		})
	})
}

// withDaemon calls use while a daemon runs.
func (s *sync) withDaemon(ctx context.Context, use func(daemon) error) (err error) {
	d := daemon{password: rand.Text()}
	command := []string{"sh", "-c", daemonScript, "rsync-daemon"}
	for range 8 {
		// Below the ports that connections come from.
		command = append(command, strconv.Itoa(20000+mathrand.IntN(10000)))
	}
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := s.in(ctx, command, genericiooptions.IOStreams{In: in, Out: out, ErrOut: s.ErrOut})
		in.Close()
		out.CloseWithError(err)
		ended <- err
	}()
	defer func() {
		stdin.Close()
		_, _ = io.Copy(io.Discard, stdout) // its error is that of the script
		if end := <-ended; end != nil && err == nil {
			err = fmt.Errorf("end the rsync daemon in the container: %w", end)
		}
	}()
	// What keeps it from being read keeps the line below from being written.
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

// read takes what the script wrote.
func (d *daemon) read(line string) (err error) {
	port, directory, found := strings.Cut(line, " ")
	if d.port, err = strconv.Atoi(port); err != nil || !found || !path.IsAbs(directory) {
		return errors.New("the container does not say its port and directory")
	}
	d.directory = directory
	return nil
}

// address returns what the local rsync calls a place.
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
