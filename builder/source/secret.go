package source

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"
)

// Secret contains the credentials for a Git server from a source secret, and the data used to
// verify the server.
//
// Source: OpenShift Container Platform 3.11 Developer Guide, source clone secrets.
type Secret struct {
	// User and Password are for http and https. A token is passed as a password.
	User, Password string
	// Key is a private key for SSH.
	Key []byte
	// KnownHosts is the path of a file with the keys of SSH servers. If it is empty, server keys
	// are not verified.
	KnownHosts string
	// Authority is a PEM-encoded CA bundle that is trusted in addition to the system's CAs.
	Authority []byte
	// Insecure disables certificate verification, as http.sslVerify = false in .gitconfig does.
	Insecure bool
	// Proxy is the value of http.proxy in .gitconfig.
	Proxy string
}

// ReadSecret reads a mounted source secret: ssh-privatekey, known_hosts, username, password, token,
// ca.crt and the http section of .gitconfig. It returns an empty secret if the directory does not
// exist.
func ReadSecret(dir string) (Secret, error) {
	read := func(name string) ([]byte, error) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return data, err
	}
	files := map[string][]byte{}
	for _, name := range []string{"ssh-privatekey", "known_hosts", "username", "password", "token", "ca.crt", ".gitconfig"} {
		data, err := read(name)
		if err != nil {
			return Secret{}, fmt.Errorf("read source secret: %w", err)
		}
		files[name] = data
	}
	secret := Secret{
		User: strings.TrimRight(string(files["username"]), "\r\n"), Password: strings.TrimRight(string(files["password"]), "\r\n"),
		Key: files["ssh-privatekey"], Authority: files["ca.crt"],
	}
	if secret.Password == "" {
		secret.Password = strings.TrimRight(string(files["token"]), "\r\n")
	}
	if files["known_hosts"] != nil {
		secret.KnownHosts = filepath.Join(dir, "known_hosts")
	}
	parsed := config.New()
	if err := config.NewDecoder(bytes.NewReader(files[".gitconfig"])).Decode(parsed); err != nil {
		return Secret{}, errors.New("read source secret: .gitconfig is not a valid Git configuration")
	}
	web := parsed.Section("http")
	secret.Proxy = web.Option("proxy")
	if verify, err := strconv.ParseBool(web.Option("sslVerify")); err == nil {
		secret.Insecure = !verify
	}
	return secret, nil
}

// auth returns the credentials for a server, or nil if the secret has none.
func (s Secret) auth(to *transport.Endpoint) (transport.AuthMethod, error) {
	switch to.Protocol {
	case "http", "https":
		if s.User == "" && s.Password == "" {
			return nil, nil
		}
		user := s.User
		if user == "" {
			user = "token" // servers that accept tokens require a user name and ignore it
		}
		return &githttp.BasicAuth{Username: user, Password: s.Password}, nil
	case "ssh":
		return s.sshAuth(to)
	}
	return nil, nil
}

func (s Secret) sshAuth(to *transport.Endpoint) (transport.AuthMethod, error) {
	if len(s.Key) == 0 {
		return nil, errors.New("an SSH repository needs a source secret with the key ssh-privatekey")
	}
	user := to.User
	if user == "" {
		user = gitssh.DefaultUsername
	}
	keys, err := gitssh.NewPublicKeys(user, s.Key, "")
	if err != nil {
		return nil, errors.New("the source secret's ssh-privatekey must be a private key without a passphrase")
	}
	keys.HostKeyCallback = ssh.InsecureIgnoreHostKey()
	if s.KnownHosts != "" {
		if keys.HostKeyCallback, err = gitssh.NewKnownHostsCallback(s.KnownHosts); err != nil {
			return nil, fmt.Errorf("read known_hosts of the source secret: %w", err)
		}
	}
	return keys, nil
}
