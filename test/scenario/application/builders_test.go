package application

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// languages are those of the examples.
var languages = []string{"golang", "nodejs", "python"}

// publishBuilders makes the images that build the examples, with the programs that people use.
func publishBuilders(t *testing.T, c *kit.Cluster) {
	t.Helper()
	for _, language := range languages {
		rootfs := fileSystem(t, c, language)
		// The project may still get its accounts.
		c.WaitFor("builder of "+language, func(ctx context.Context) error {
			cmd := exec.CommandContext(ctx, c.RepositoryFile("examples", "builders", "make.sh"), language)
			cmd.Env = append(os.Environ(), "SLIPWAY="+c.RepositoryFile("bin", "slipway"), "SLIPWAY_DATA_DIR="+c.DataDir, "ROOTFS="+rootfs)
			return finish(cmd, func(cmd *exec.Cmd) error { return c.Do(cmd.Start) })
		})
	}
}

// fileSystem unpacks the packages of a language, unless an earlier run has. What it makes takes
// long, and is kept beside the programs under test.
func fileSystem(t *testing.T, c *kit.Cluster, language string) (file string) {
	t.Helper()
	file = c.RepositoryFile("bin", "rootfs-"+language+".tar")
	if _, err := os.Stat(file); err == nil {
		return file
	}
	var err error
	for range 3 { // a mirror may fail
		if err = finish(exec.CommandContext(t.Context(), c.RepositoryFile("examples", "builders", "rootfs.sh"), language, file), (*exec.Cmd).Start); err == nil {
			return file
		}
	}
	t.Fatal(err)
	return ""
}

// finish runs a command, which is started by start. The error has what it said.
func finish(command *exec.Cmd, start func(*exec.Cmd) error) error {
	var text strings.Builder
	command.Stdout, command.Stderr = &text, &text
	err := start(command)
	if err == nil {
		err = command.Wait()
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(command.Path), err, text.String())
	}
	return nil
}

// repository is a Git repository with the examples, which a server on the machine's side of the
// cluster's network has at an address.
type repository struct {
	t         *testing.T
	url, work string
}

func newRepository(t *testing.T, c *kit.Cluster) *repository {
	t.Helper()
	root := t.TempDir()
	listener, err := net.Listen("tcp", net.JoinHostPort(c.Gateway.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: &cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}}}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	bare := filepath.Join(root, "examples.git")
	r := &repository{t: t, url: "http://" + listener.Addr().String() + "/examples.git", work: filepath.Join(root, "work")}
	r.git("init", "-q", "--bare", "-b", "main", bare)
	r.git("-C", bare, "config", "http.receivepack", "true")
	r.git("init", "-q", "-b", "main", r.work)
	for _, language := range languages {
		if err := os.CopyFS(filepath.Join(r.work, "examples", language), os.DirFS(c.RepositoryFile("examples", language))); err != nil {
			t.Fatal(err)
		}
	}
	r.push("1")
	return r
}

// push gives all applications a version and pushes it.
func (r *repository) push(version string) (commit string) {
	r.t.Helper()
	for _, language := range languages {
		write(r.t, filepath.Join(r.work, "examples", language, "VERSION"), version+"\n")
	}
	r.git("-C", r.work, "add", "-A")
	r.git("-C", r.work, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "version "+version)
	r.git("-C", r.work, "push", "-q", r.url, "main")
	return r.git("-C", r.work, "rev-parse", "HEAD")
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	output, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return strings.TrimSpace(string(output))
}

// load asks for a page all the time until it is stopped, which returns what failed.
func load(c *kit.Cluster, url string) (stop func() []error) {
	client, ended := visitor(c), make(chan struct{})
	var failures []error
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			if _, err := get(client, url); err != nil {
				failures = append(failures, err)
			}
		}
	})
	return func() []error {
		close(ended)
		asking.Wait()
		return failures
	}
}
