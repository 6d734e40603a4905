package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// loadBuiltin loads the pod sandbox image and the tools image.
func loadBuiltin(t *testing.T, n *node) {
	t.Helper()
	for _, make := range []func() (Image, error){
		func() (Image, error) { return Pause(n.programs.Pause) },
		func() (Image, error) { return Tools(busybox) },
	} {
		img, err := make()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.store.Load(t.Context(), img); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "kubelet to see it", func() bool { return n.image(t, img.Name) != nil })
	}
}

// recipeOf creates a directory that contains files to copy and the Dockerfile.
func recipeOf(t *testing.T, lines ...string) Recipe {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"Dockerfile": strings.Join(lines, "\n") + "\n", "driver": "#!/bin/sh\necho driver\n", "tree/a": "a", "tree/below/b": "b",
		"layer.tar": string(tarFile(t, "a", nil)),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return Recipe{File: filepath.Join(dir, "Dockerfile"), Context: dir, Name: "localhost/built:1"}
}

func TestBuildRecipe(t *testing.T) {
	n := startNode(t)
	loadBuiltin(t, n)
	recipe := recipeOf(t,
		"# A comment, and a base from an argument.",
		"ARG BASE=busybox",
		"FROM ${BASE}",
		"ARG NAME=none",
		"ARG OTHER=default",
		"ENV NAME=${NAME} OTHER=$OTHER \\",
		"    THIRD=\"with a space\"",
		"LABEL purpose=test",
		"WORKDIR /work",
		"COPY driver /$NAME",
		"COPY tree ./tree/",
		"ADD driver tree/a usr/bin/",
		`ENTRYPOINT ["/bin/sleep", "600"]`,
	)
	recipe.Arguments = map[string]string{"BASE": ToolsName, "NAME": "loop"}
	for range 2 { // the second build replaces the image
		name, err := n.store.Build(t.Context(), recipe)
		if err != nil || name != "localhost/built:1" {
			t.Fatalf("name %q, error %v", name, err)
		}
	}
	eventually.True(t, "kubelet to see it", func() bool { return n.image(t, "localhost/built:1") != nil })
	if image := n.image(t, "localhost/built:1"); !image.Pinned {
		t.Error("the image is not pinned: the kubelet can remove it, and no registry has it")
	}
	container := n.run(t, "localhost/built:1")
	const script = `pwd; /loop; echo "$NAME $OTHER $THIRD"; cat tree/a tree/below/b; echo; ls usr/bin; stat -c %u /loop`
	const want = "/work\ndriver\nloop default with a space\nab\na\ndriver\n0\n"
	if got := n.exec(t, container, "sh", "-c", script); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// A built image can itself be a base image.
	next := recipeOf(t, "FROM localhost/built:1", "COPY driver /again")
	next.Name = "localhost/next"
	if name, err := n.store.Build(t.Context(), next); err != nil || name != "localhost/next:latest" {
		t.Errorf("name %q, error %v", name, err)
	}
}

func TestBuildRecipeFromScratchWithArchive(t *testing.T) {
	n := startNode(t)
	recipe := recipeOf(t, "FROM scratch", "ADD root.tar /", "COPY driver /tree/a", "EXPOSE 8080 53/udp", "USER 1001")
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(recipe.Context, "root.tar"))
	if err != nil {
		t.Fatal(err)
	}
	err = writeTar(archive, []entry{{path: "bin/busybox", mode: 0o755, data: program}, link("bin/sleep", "busybox"), file("tree/a", 0o644, "from the archive"), file("tree/b", 0o644, "b")})
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := n.store.Build(t.Context(), recipe); err != nil {
		t.Fatal(err)
	}
	loadBuiltin(t, n)
	container := n.run(t, "localhost/built:1")
	if got := n.exec(t, container, "/bin/busybox", "sh", "-c", "cat /tree/a /tree/b; id -u"); got != "#!/bin/sh\necho driver\nb1001\n" {
		t.Errorf("%q", got)
	}
}

// TestBuildOnImageWithoutArchives uses a base image whose layers exist only in unpacked form, like
// the layers of the platform's own images.
func TestBuildOnImageWithoutArchives(t *testing.T) {
	n := startNode(t)
	pause, err := Pause(n.programs.Pause)
	if err != nil {
		t.Fatal(err)
	}
	base, err := Tools(busybox)
	if err != nil {
		t.Fatal(err)
	}
	base.Name, base.unpackedOnly = "localhost/unpacked:1", true
	for _, img := range []Image{pause, base} {
		if _, err := n.store.Load(t.Context(), img); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.store.Build(t.Context(), recipeOf(t, "FROM localhost/unpacked:1", "COPY driver /driver", `ENTRYPOINT ["/bin/sleep", "600"]`)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "kubelet to see it", func() bool { return n.image(t, "localhost/built:1") != nil })
	if got := n.exec(t, n.run(t, "localhost/built:1"), "/driver"); got != "driver\n" {
		t.Errorf("%q", got)
	}
}

func TestBuildExplainsUnsupportedRecipes(t *testing.T) {
	n := startNode(t)
	loadBuiltin(t, n)
	from := "FROM " + ToolsName
	for _, test := range []struct {
		lines []string
		want  string
	}{
		{[]string{from, "RUN true"}, "line 2: RUN: the instruction needs a builder such as podman or docker"},
		{[]string{from, "COPY missing /"}, "line 2: COPY: missing is not in "},
		{[]string{from, "COPY ../../../etc/passwd /"}, "line 2: COPY: ../../../etc/passwd is not in "},
		{[]string{from, "COPY --from=other driver /"}, "line 2: COPY: options are not supported"},
		{[]string{from, "ADD missing.tar /"}, "line 2: ADD: missing.tar is not in "},
		{[]string{from, "ADD layer.tar /tree"}, "line 2: ADD: the archive layer.tar can only be added to the directory /"},
		{[]string{from, "ADD --chown=1 driver /"}, "line 2: ADD: options are not supported"},
		{[]string{from, "COPY driver /", "ADD layer.tar /"}, "line 3: ADD: archives must be added before files are copied"},
		{[]string{from, "EXPOSE 80-90"}, `line 2: EXPOSE: "80-90" is not a port`},
		{[]string{"FROM example.com/nowhere:1"}, `use base image "example.com/nowhere:1": it is not on this host`},
		{[]string{from, from}, "it has 2 stages"},
		{[]string{"COPY driver /"}, "no build stage in current context"},
		{[]string{from, "NONSENSE"}, "unknown instruction: NONSENSE"},
	} {
		if _, err := n.store.Build(t.Context(), recipeOf(t, test.lines...)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %s", test.lines, err, test.want)
		}
	}
	recipe := recipeOf(t, from)
	recipe.Arguments = map[string]string{"VENDR": "example.com"}
	if _, err := n.store.Build(t.Context(), recipe); err == nil || !strings.Contains(err.Error(), "it has no ARG VENDR") {
		t.Error(err)
	}
}

func TestBuildWaitsForImageThatNodeLoadsLate(t *testing.T) {
	n := startNode(t)
	recipe := recipeOf(t, "FROM "+SelfName, "COPY driver /driver")
	load := func(name string) {
		self, err := Self(busybox)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := n.store.Load(t.Context(), self); err != nil || name != SelfName {
			t.Errorf("load %s: %v", name, err)
		}
	}
	waits := 0
	recipe.Waiting = func(name string) {
		waits++
		load(name)
	}
	for range 2 { // the second build has nothing to wait for
		if _, err := n.store.Build(t.Context(), recipe); err != nil {
			t.Fatal(err)
		}
	}
	if waits != 1 {
		t.Errorf("Build waited %d times", waits)
	}
}

func TestWaitingBuildCanBeCanceled(t *testing.T) {
	n := startNode(t)
	recipe := recipeOf(t, "FROM "+DeployerName)
	ctx, cancel := context.WithCancel(t.Context())
	recipe.Waiting = func(string) { cancel() }
	if _, err := n.store.Build(ctx, recipe); err == nil {
		t.Error("the build without its base succeeds")
	}
}
