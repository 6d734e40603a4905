package s3

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

const (
	program   = "github.com/versity/versitygw/cmd/versitygw"
	accessKey = "ann"
	secretKey = "secretsecret"
	bucket    = "images"
)

// server is an S3 server on this machine that is reachable from the cluster's network. Its objects
// are files below dir.
type server struct {
	address string
	dir     string
}

// serve builds the server and starts it for a cluster.
func serve(t *testing.T, c *kit.Cluster) *server {
	t.Helper()
	return serveAt(t, c.RepositoryFile("bin", "versitygw"), c.Gateway.String())
}

// serveAt builds the server and starts it on a port on host, with an empty bucket.
func serveAt(t *testing.T, result, host string) *server {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", result, program)
	build.Dir, build.Env = "server", append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", program, err, output)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{address: listener.Addr().String(), dir: t.TempDir()}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.dir, bucket), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(result, "--quiet", "--port", s.address, "posix", s.dir)
	command.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return s
}

// configuration writes the configuration file for a registry that stores its images on this server.
// It returns the file's path.
func (s *server) configuration(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "registry.yml")
	content := fmt.Sprintf(`version: 0.1
storage:
  s3: {regionendpoint: "http://%s", region: us-east-1, bucket: %s, accesskey: %s, secretkey: %s, forcepathstyle: true, secure: false, rootdirectory: /registry}
`, s.address, bucket, accessKey, secretKey)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// objects returns the files of all objects that match a path pattern in the bucket.
func (s *server) objects(t *testing.T, path ...string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(append([]string{s.dir, bucket}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
