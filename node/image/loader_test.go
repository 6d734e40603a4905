package image

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

const busybox = "/bin/busybox"

// runLoader runs l until done returns true.
func runLoader(t *testing.T, l Loader, done func() bool) {
	t.Helper()
	component := componenttest.Run(t, l.Run)
	eventually.True(t, "the images to be loaded", done)
	component.Stop()
}

func list(t *testing.T, s Store) []Summary {
	t.Helper()
	images, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return images
}

func names(images []Summary) []string {
	var names []string
	for _, image := range images {
		names = append(names, image.Name)
	}
	return names
}

func TestLoaderLoadsImagesOfNode(t *testing.T) {
	n := startNode(t)
	archives := t.TempDir()
	writeDockerArchive(t, filepath.Join(archives, "app.tar"), "example.com/team/app:1")
	if err := os.WriteFile(filepath.Join(archives, "damaged.tar"), []byte("no archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := Loader{Store: n.store, Pause: n.programs.Pause, Busybox: busybox, Executable: "/proc/self/exe", Archives: archives}
	want := []string{"example.com/team/app:1", SelfName, DeployerName, PauseName, ToolsName}
	all := func() bool { return len(list(t, n.store)) == len(want) }

	runLoader(t, l, all)
	first := list(t, n.store)
	if diff := cmp.Diff(want, names(first), cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Fatal(diff)
	}
	for _, image := range first {
		eventually.True(t, "kubelet to see "+image.Name+" pinned", func() bool { return n.image(t, image.Name).GetPinned() })
		if !image.Pinned || image.Size == 0 {
			t.Errorf("%+v", image)
		}
	}

	// Running the loader again writes nothing, even after a containerd restart.
	n.daemon.Restart(t)
	runLoader(t, l, all)
	if diff := cmp.Diff(first, list(t, n.store)); diff != "" {
		t.Errorf("loaded again:\n%s", diff)
	}
	for _, image := range first {
		eventually.True(t, "kubelet to see "+image.Name+" after a restart", func() bool { return n.image(t, image.Name).GetPinned() })
	}

	// Add an archive, and replace another archive with a newer version.
	writeDockerArchive(t, filepath.Join(archives, "app.tar"), "example.com/team/app:2")
	runLoader(t, l, func() bool { return len(list(t, n.store)) == len(want)+1 })
}

func TestToolsRunInPod(t *testing.T) {
	n := startNode(t)
	loadBuiltin(t, n)
	// The pod is on the host network, where another process can use the port, so try several ports.
	script := `set -e
echo hello >/tmp/index.html
port=18099
until httpd -p 127.0.0.1:$port -h /tmp 2>/dev/null; do port=$((port+1)); done
echo $port >/tmp/port
wget -q -O - http://localhost:$port/
/usr/bin/env id -un
stat -c %a /tmp`
	container := n.run(t, ToolsName)
	if got, want := n.exec(t, container, "sh", "-c", script), "hello\nroot\n1777\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}

	// The container continues to run without containerd, and the restarted containerd finds it.
	n.daemon.Restart(t)
	if got, want := n.exec(t, container, "sh", "-c", "wget -q -O - http://127.0.0.1:$(cat /tmp/port)/"), "hello\n"; got != want {
		t.Errorf("after a restart of containerd %q, want %q", got, want)
	}
}

func TestImagesAreReproducible(t *testing.T) {
	var digests []string
	for range 2 {
		n := startNode(t)
		for _, make := range []func(string) (Image, error){Tools, Self} {
			img, err := make(busybox)
			if err != nil {
				t.Fatal(err)
			}
			if loaded, err := n.store.Load(t.Context(), img); err != nil || !loaded {
				t.Fatalf("%v, %v", loaded, err)
			}
			if loaded, err := n.store.Load(t.Context(), img); err != nil || loaded {
				t.Errorf("a second time: %v, %v", loaded, err)
			}
		}
		for _, image := range list(t, n.store) {
			digests = append(digests, image.Digest)
		}
	}
	if diff := cmp.Diff(digests[:2], digests[2:]); diff != "" {
		t.Error(diff)
	}
}

func TestChangedProgramReplacesImage(t *testing.T) {
	n := startNode(t)
	program := filepath.Join(t.TempDir(), "program")
	var digests []string
	for _, version := range []string{"1", "2"} {
		data, err := os.ReadFile(busybox)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(program, append(data, version...), 0o755); err != nil {
			t.Fatal(err)
		}
		img, err := Self(program)
		if err != nil {
			t.Fatal(err)
		}
		if loaded, err := n.store.Load(t.Context(), img); err != nil || !loaded {
			t.Fatalf("version %s: %v, %v", version, loaded, err)
		}
		digests = append(digests, list(t, n.store)[0].Digest)
	}
	if digests[0] == digests[1] {
		t.Error("the image is not replaced")
	}
}

func TestSelfIsNotStoredTwice(t *testing.T) {
	n := startNode(t)
	img, err := Self("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.store.Load(t.Context(), img); err != nil {
		t.Fatal(err)
	}
	c, err := n.store.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const large = 1 << 20
	err = c.ContentStore().Walk(t.Context(), func(blob content.Info) error {
		if blob.Size > large {
			t.Errorf("blob %s of %d bytes still exists", blob.Digest, blob.Size)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestInterruptedLoadCanBeRepeated(t *testing.T) {
	n := startNode(t)
	img, err := Self("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(30*time.Millisecond, cancel)
	if _, err := n.store.Load(ctx, img); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that of the interruption", err)
	}
	if loaded, err := n.store.Load(t.Context(), img); err != nil || !loaded {
		t.Fatalf("%v, %v", loaded, err)
	}
}

func TestToolsErrorNamesUnusableBusyboxAndRemedy(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"missing": "/nowhere/busybox", "dynamic": "/bin/ls", "no program": script} {
		_, err := Tools(path)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "apt-get install busybox-static") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestReportDeployerLogsErrorOnce(t *testing.T) {
	var logged bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	responses := []error{errors.New("no right"), errors.New("no right"), nil}
	loader := Loader{HasDeployer: func(context.Context) error {
		next := responses[0]
		responses = responses[1:]
		return next
	}}
	if err := loader.reportDeployer(t.Context()); err != nil || len(responses) != 0 {
		t.Errorf("%v, %d responses were not used", err, len(responses))
	}
	if count := strings.Count(logged.String(), "no right"); count != 1 {
		t.Errorf("the error is logged %d times", count)
	}
}
