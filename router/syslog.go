package router

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
)

// maxLineBytes is the maximum length of a log line from HAProxy, in bytes.
const maxLineBytes = 64 << 10

// RelayLog receives the messages that HAProxy sends to a log socket, and writes them to out without
// their priority, until ctx is done. For a router in a pod, this makes HAProxy's log part of the
// container log. RelayLog creates the socket at path and replaces an existing socket.
func RelayLog(ctx context.Context, path string, out io.Writer) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("create log socket: %w", err)
	}
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("create log socket: %w", err)
	}
	defer socket.Close()
	if err := os.Chmod(path, 0o666); err != nil { // HAProxy can run as another user in the pod
		return fmt.Errorf("create log socket: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })()
	buffer := make([]byte, maxLineBytes)
	for {
		n, err := socket.Read(buffer)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read log socket: %w", err)
		}
		line := buffer[:n]
		if end := bytes.IndexByte(line, '>'); end > 0 && line[0] == '<' {
			line = line[end+1:]
		}
		if _, err := fmt.Fprintf(out, "%s\n", bytes.TrimRight(line, "\n")); err != nil {
			return fmt.Errorf("write log: %w", err)
		}
	}
}
