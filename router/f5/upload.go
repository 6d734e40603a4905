package f5

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"

	"golang.org/x/crypto/ssh"
)

// restDir is the folder for files that are uploaded through the REST API. sshDir is the folder for
// files that are uploaded over SSH.
const restDir, sshDir = "/var/config/rest/downloads/", "/var/tmp/"

// install uploads a file and stores it on the appliance as an object, such as sys/file/ssl-key. The
// name must consist of letters, digits, dots, dashes and underscores.
func (a *Appliance) install(ctx context.Context, collection, name string, content []byte) error {
	source, remove, err := a.upload(ctx, name, content)
	defer remove() // removes the file, even if it is incomplete
	if err != nil {
		return fmt.Errorf("upload %q: %w", name, err)
	}
	body := map[string]any{"name": name, "partition": a.config.Partition, "sourcePath": "file:" + source}
	return a.client.call(ctx, http.MethodPost, collection, body, nil)
}

// upload writes a file to the appliance's file system. It returns the file's path and a function
// that removes the file.
func (a *Appliance) upload(ctx context.Context, name string, content []byte) (path string, remove func(), err error) {
	if a.config.ssh != nil {
		path = sshDir + name
		// Ignore errors, because a leftover file is harmless.
		remove = func() { _ = a.run(ctx, "rm -f "+path, nil) }
		return path, remove, a.run(ctx, "umask 077; cat > "+path, content)
	}
	path = restDir + name
	remove = func() {
		body := map[string]any{"command": "run", "utilCmdArgs": path}
		_ = a.client.call(ctx, http.MethodPost, "util/unix-rm", body, nil)
	}
	header := http.Header{
		"Content-Type":  {"application/octet-stream"},
		"Content-Range": {fmt.Sprintf("0-%d/%d", len(content)-1, len(content))},
	}
	_, err = a.client.send(ctx, http.MethodPost, "/mgmt/shared/file-transfer/uploads/"+name, bytes.NewReader(content), header)
	return path, remove, err
}

// run runs a command in the appliance's shell over SSH.
func (a *Appliance) run(ctx context.Context, command string, input []byte) error {
	address := a.config.sshAddress
	conn, err := (&net.Dialer{Timeout: requestTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connect over SSH: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	handshaken, channels, requests, err := ssh.NewClientConn(conn, address, a.config.ssh)
	if err != nil {
		_ = conn.Close()
		return fmt.Errorf("connect over SSH: %w", err)
	}
	connection := ssh.NewClient(handshaken, channels, requests)
	defer connection.Close()
	session, err := connection.NewSession()
	if err != nil {
		return fmt.Errorf("connect over SSH: %w", err)
	}
	defer session.Close()
	session.Stdin = bytes.NewReader(input)
	if output, err := session.CombinedOutput(command); err != nil {
		return fmt.Errorf("run command over SSH: %w: %.200s; the user needs access to the advanced shell", err, output)
	}
	return nil
}
