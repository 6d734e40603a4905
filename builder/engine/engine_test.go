package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	gateway "github.com/moby/buildkit/frontend/gateway/client"

	"github.com/slipway-platform/slipway/internal/payload"
)

// start starts an engine in a new directory.
func start(t *testing.T) *Engine {
	t.Helper()
	programs, err := payload.Unpack(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e, err := Start(context.WithoutCancel(t.Context()), Config{Root: t.TempDir(), Runc: programs.Runc})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// directory creates a directory that contains files and the host's busybox.
func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "busybox"), busybox, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, content := range files {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newRegistry starts a registry and returns its host.
func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelError))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func dockerfileOf(ctx context.Context, c gateway.Client) (*gateway.Result, error) {
	return c.Solve(ctx, gateway.SolveRequest{Frontend: DockerfileFrontend, Evaluate: true})
}

func TestRunPushesImageOfDockerfile(t *testing.T) {
	e := start(t)
	dir := directory(t, map[string]string{"Dockerfile": `
FROM scratch AS made
COPY busybox /bin/busybox
SHELL ["/bin/busybox", "sh", "-c"]
RUN echo the command speaks; echo content >/made; /bin/busybox id -u; /bin/busybox grep CapBnd /proc/self/status
RUN --network=none /bin/busybox grep CapBnd /proc/self/status
FROM scratch
COPY --from=made /made /made
ENV WORD=hello
`})
	var out bytes.Buffer
	reference := newRegistry(t) + "/team/app:v1"
	job := Job{
		Build: dockerfileOf, Dirs: map[string]string{"context": dir, "dockerfile": dir}, Push: reference, ExportCache: true, Out: &out,
		Credentials: func(string, bool) (string, string) { return "", "" },
	}
	digest, err := e.Run(t.Context(), job)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	tag, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(tag)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := image.Digest(); err != nil || got.String() != digest {
		t.Errorf("pushed digest is %v (%v), returned digest is %s", got, err, digest)
	}
	if file, err := image.ConfigFile(); err != nil || !strings.Contains(strings.Join(file.Config.Env, " "), "WORD=hello") || len(file.RootFS.DiffIDs) != 1 {
		t.Errorf("the image is %+v, %v", file, err)
	}
	// Steps in both networks have the default capabilities except NET_RAW.
	if got := strings.Count(out.String(), "CapBnd:\t00000000a80405fb\n"); got != 2 {
		t.Errorf("%d of 2 steps have the expected capabilities:\n%s", got, out.String())
	}
	for _, want := range []string{"Step 2/3 (made) : RUN echo the command speaks", "\nthe command speaks\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, out.String())
		}
	}
}

func TestRunDistinguishesFailedPush(t *testing.T) {
	e := start(t)
	for dockerfile, pushed := range map[string]bool{"FROM scratch\nCOPY busybox /\n": true, "FROM scratch\nCOPY nothing /\n": false} {
		dir := directory(t, map[string]string{"Dockerfile": dockerfile})
		_, err := e.Run(t.Context(), Job{
			Build: dockerfileOf, Dirs: map[string]string{"context": dir, "dockerfile": dir}, Push: "127.0.0.1:1/team/app", Out: t.Output(),
			Credentials: func(string, bool) (string, string) { return "", "" },
		})
		var push *PushError
		if err == nil || errors.As(err, &push) != pushed {
			t.Errorf("%q: got error %v", dockerfile, err)
		}
	}
}
