package build

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// sshServer is an SSH server on one of the host's addresses. It serves the Git repositories in a
// directory, and supports the hello command.
type sshServer struct {
	dir                 string
	config              *ssh.ServerConfig
	authorized          map[string]bool // accepted public keys
	address, host, port string
	knownHosts          string
	// key and locked are private keys for the user git. locked is encrypted with passphrase.
	key, locked, passphrase string
}

func (p *project) sshServer(dir string) *sshServer {
	p.t.Helper()
	s := &sshServer{dir: dir, authorized: map[string]bool{}, passphrase: "pass-word of key"}
	s.key, s.locked = s.newKey(p.t, ""), s.newKey(p.t, s.passphrase)
	_, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	hostKey, err := ssh.NewSignerFromSigner(secret)
	if err != nil {
		p.t.Fatal(err)
	}
	s.config = &ssh.ServerConfig{PublicKeyCallback: func(user ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if user.User() != "git" || !s.authorized[string(key.Marshal())] {
			return nil, fmt.Errorf("unknown key of %s", user.User())
		}
		return nil, nil
	}}
	s.config.AddHostKey(hostKey)
	listener, err := net.Listen("tcp", net.JoinHostPort(p.Gateway.String(), "0"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { listener.Close() })
	s.address = listener.Addr().String()
	s.host, s.port, _ = net.SplitHostPort(s.address)
	s.knownHosts = knownhosts.Line([]string{s.address}, hostKey.PublicKey()) + "\n"
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

// newKey returns a private key that the server accepts.
func (s *sshServer) newKey(t *testing.T, passphrase string) string {
	t.Helper()
	public, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	s.authorized[string(key.Marshal())] = true
	block, err := ssh.MarshalPrivateKey(secret, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(secret, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

// serve handles a connection until it is closed.
func (s *sshServer) serve(conn net.Conn) {
	defer conn.Close()
	server, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	defer server.Close()
	go ssh.DiscardRequests(requests)
	for incoming := range channels {
		if incoming.ChannelType() != "session" {
			_ = incoming.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := incoming.Accept()
		if err != nil {
			return
		}
		go s.session(channel, requests)
	}
}

var uploadPack = regexp.MustCompile(`^git[ -]upload-pack '/?([a-z]+)'$`)

// session runs a session's command.
func (s *sshServer) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for request := range requests {
		if request.Type != "exec" {
			_ = request.Reply(request.Type == "env", nil)
			continue
		}
		var command struct{ Line string }
		_ = ssh.Unmarshal(request.Payload, &command)
		_ = request.Reply(true, nil)
		status := struct{ Code uint32 }{}
		if err := s.run(command.Line, channel); err != nil {
			status.Code = 1
			fmt.Fprintln(channel.Stderr(), err)
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}

func (s *sshServer) run(line string, channel io.ReadWriter) error {
	if line == "hello" {
		_, err := fmt.Fprintln(channel, "hello from the server")
		return err
	}
	match := uploadPack.FindStringSubmatch(line)
	if match == nil {
		return fmt.Errorf("no such command: %s", line)
	}
	pack := exec.Command("git-upload-pack", filepath.Join(s.dir, match[1]))
	pack.Stdout = channel
	input, err := pack.StdinPipe()
	if err == nil {
		err = pack.Start()
	}
	if err != nil {
		return err
	}
	go func() { // ends when the channel is closed
		_, _ = io.Copy(input, channel)
		input.Close()
	}()
	return pack.Wait()
}

const sshJenkinsfile = `
def other = 'ssh://SERVER/other'
node {
  checkout scm
  sh 'cat file'
  dir('other') {
    git url: other, branch: 'main', credentialsId: 'git'
    sh 'cat text'
  }
  dir('refused') {
    try {
      git url: other, branch: 'main', credentialsId: 'forged'
    } catch (e) {
      echo "forged: ${e.message.contains('Host key verification failed')}"
    }
  }
  sshagent(credentials: ['locked', 'missing'], ignoreMissing: true) {
    sh 'ssh -p PORT -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null git@HOST hello'
    dir('third') {
      git url: other, branch: 'main'
      sh 'cat text'
    }
  }
  sh 'echo "later: $SSH_AUTH_SOCK"'
  try {
    sshagent(['wrong']) { echo 'unreachable' }
  } catch (e) {
    echo 'wrong passphrase'
  }
}
podTemplate(label: 'pod') {
  node('pod') {
    git url: other, branch: 'main', credentialsId: 'git'
    sshagent(['git']) { sh 'cat text; ssh -p PORT -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null git@HOST hello' }
  }
}`

// sshInBuilder is appended to the pipeline if the test also covers the Node.js builder image.
const sshInBuilder = `
node('nodejs') {
  git url: other, branch: 'main', credentialsId: 'git'
  sshagent(['git']) { sh 'cat text; ssh -p PORT -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null git@HOST hello' }
}`

func TestPipelineUsesSSH(t *testing.T) {
	p := newProject(t)
	p.publishRunner()
	jenkinsfile, agents := sshJenkinsfile, 1
	if os.Getenv("SLIPWAY_TEST_SAMPLES") != "" { // set by `make samples`
		p.BuildSample("nodejs", "")
		jenkinsfile, agents = sshJenkinsfile+sshInBuilder, 2
	}
	dir := t.TempDir()
	s := p.sshServer(dir)
	file := strings.NewReplacer("SERVER", s.address, "HOST", s.host, "PORT", s.port).Replace(jenkinsfile)
	p.commit(filepath.Join(dir, "app"), map[string]string{"Jenkinsfile": file, "file": "file of the source\n"})
	p.commit(filepath.Join(dir, "other"), map[string]string{"text": "text of the other\n"})
	secret := func(name string, literals ...string) {
		arguments := []string{"create", "secret", "generic", name}
		for _, literal := range literals {
			arguments = append(arguments, "--from-literal="+literal)
		}
		p.OC(arguments...)
		p.OC("label", "secret", name, "credential.sync.jenkins.openshift.io=true")
	}
	stranger := strings.Replace(s.knownHosts, strings.Fields(s.knownHosts)[2], p.strangerKey(), 1)
	secret("git", "ssh-privatekey="+s.key, "known_hosts="+s.knownHosts)
	secret("forged", "ssh-privatekey="+s.key, "known_hosts="+stranger)
	secret("locked", "ssh-privatekey="+s.locked, "passphrase="+s.passphrase)
	secret("wrong", "ssh-privatekey="+s.locked, "passphrase=other-word")
	p.OC("create", "serviceaccount", "pipeline")
	p.OC("policy", "add-role-to-user", "edit", "-z", "pipeline")
	p.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: app}, spec: {serviceAccount: pipeline,
		source: {git: {uri: "ssh://git@%s/app", ref: main}, sourceSecret: {name: git}}, strategy: {jenkinsPipelineStrategy: {}}}}`, s.address))
	log := p.OC("start-build", "app", "--follow", "--wait")
	// "later" occurs once more, because the shell also logs the command that prints it.
	for want, count := range map[string]int{
		"file of the source\n": 1, "text of the other\n": 2 + agents, "forged: true\n": 1, "hello from the server\n": 1 + agents, "later: \n": 2, "wrong passphrase\n": 1, "unreachable": 0,
	} {
		if got := strings.Count(log, want); got != count {
			t.Errorf("the log has %q %d times, want %d:\n%s", want, got, count, log)
		}
	}
	for _, secret := range []string{s.passphrase, "PRIVATE KEY", strings.Split(s.key, "\n")[1]} {
		if strings.Contains(log, secret) {
			t.Errorf("the log shows %q", secret)
		}
	}
}

// strangerKey returns a public key in known_hosts format that belongs to no server.
func (p *project) strangerKey() string {
	p.t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Fields(string(ssh.MarshalAuthorizedKey(key)))[1]
}
