package bigiptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Shell is the appliance's SSH server, with the commands that store and remove files.
type Shell struct {
	// Address is host:port.
	Address string
	// PrivateKey is the file with a key that the server accepts, and KnownHosts is the file with
	// the server's own key.
	PrivateKey, KnownHosts string
}

// Shell starts the SSH server, which stops at the end of the test.
func (a *Appliance) Shell(t testing.TB) Shell {
	t.Helper()
	user, userFile := newKey(t)
	host, _ := newKey(t)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(user.PublicKey().Marshal()) {
			return nil, ssh.ErrNoAuth
		}
		return &ssh.Permissions{}, nil
	}}
	config.AddHostKey(host)
	shell := Shell{PrivateKey: userFile, KnownHosts: filepath.Join(t.TempDir(), "known_hosts")}
	listener := a.listen(t, &shell.Address)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			a.shell(conn, config)
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-stopped })
	line := knownhosts.Line([]string{knownhosts.Normalize(shell.Address)}, host.PublicKey())
	if err := os.WriteFile(shell.KnownHosts, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return shell
}

// newKey returns a key and the path of its file.
func newKey(t testing.TB) (ssh.Signer, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return signer, file
}

// shell serves one connection.
func (a *Appliance) shell(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	defer server.Close()
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		for request := range requests {
			if request.Type != "exec" {
				_ = request.Reply(false, nil)
				continue
			}
			_ = request.Reply(true, nil)
			status := struct{ Code uint32 }{a.execute(string(request.Payload[4:]), channel)}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
			_ = channel.Close()
		}
	}
}

// execute runs a command and returns its exit code.
func (a *Appliance) execute(command string, input io.Reader) uint32 {
	content, err := io.ReadAll(input)
	a.mu.Lock()
	defer a.mu.Unlock()
	if path, ok := strings.CutPrefix(command, "umask 077; cat > "); ok && err == nil {
		a.files[path] = content
		return 0
	}
	if path, ok := strings.CutPrefix(command, "rm -f "); ok && err == nil {
		delete(a.files, path)
		return 0
	}
	return 127
}
