package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/content"

	"github.com/slipway-platform/slipway/internal/eventually"
)

const haproxyProgram = "/usr/sbin/haproxy"

func TestRouterImageRunsHostsHAProxy(t *testing.T) {
	n := startNode(t)
	loadBuiltin(t, n)
	router, err := Router(haproxyProgram)
	if err != nil {
		t.Fatal(err)
	}
	router.base = ToolsName // the checks need this image's shell
	if loaded, err := n.store.Load(t.Context(), router); err != nil || !loaded {
		t.Fatalf("%v, %v", loaded, err)
	}
	eventually.True(t, "kubelet to see it pinned", func() bool { return n.image(t, RouterName).GetPinned() })
	container := n.run(t, RouterName)
	version := n.exec(t, container, "/usr/sbin/haproxy", "-v")
	if !strings.HasPrefix(version, "HAProxy version") {
		t.Errorf("got %q", version)
	}
	const want = "drwxrwxr-x root"
	if got := n.exec(t, container, "sh", "-c", "stat -c '%A %G' /var/lib/haproxy"); strings.TrimSpace(got) != want {
		t.Errorf("the working directory is %q, want %q", got, want)
	}
}

func TestRouterImageSharesLayersOfBase(t *testing.T) {
	n := startNode(t)
	base := filepath.Join(t.TempDir(), "program")
	load := func(img Image, want bool) {
		t.Helper()
		if loaded, err := n.store.Load(t.Context(), img); err != nil || loaded != want {
			t.Fatalf("%s: loaded %t, %v, want %t", img.Name, loaded, err, want)
		}
	}
	router, err := Router(haproxyProgram)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.store.Load(t.Context(), router); err == nil || !strings.Contains(err.Error(), "find base image "+SelfName) {
		t.Errorf("the image is loaded without its base: %v", err)
	}
	before := ""
	for _, version := range []string{"1", "2"} { // two versions of Slipway
		content, err := os.ReadFile(busybox)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(base, append(content, version...), 0o755); err != nil {
			t.Fatal(err)
		}
		self, err := Self(base)
		if err != nil {
			t.Fatal(err)
		}
		load(self, true)
		load(router, true)
		load(router, false)
		for _, summary := range list(t, n.store) {
			if summary.Name == RouterName {
				if summary.Digest == before {
					t.Error("the image is the same with another version of slipway")
				}
				before = summary.Digest
			}
		}
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

func TestLibrariesOfPrograms(t *testing.T) {
	if libs, err := libraries(busybox); err != nil || libs != nil {
		t.Errorf("the libraries of a static program are %v, %v", libs, err)
	}
	libs, err := libraries(haproxyProgram)
	if err != nil || !strings.Contains(strings.Join(libs, " "), "/libssl.so") || !strings.Contains(strings.Join(libs, " "), "/ld-linux") {
		t.Errorf("the libraries of HAProxy are %v, %v", libs, err)
	}
	source, program := filepath.Join(t.TempDir(), "main.c"), filepath.Join(t.TempDir(), "program")
	library := filepath.Join(filepath.Dir(program), "libgone.so")
	if err := os.WriteFile(source, []byte("int f(void); int main(void) { return f(); }"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-shared", "-o", library, "-x", "c", "/dev/null"},
		{"-o", program, source, "-Wl,--unresolved-symbols=ignore-all", "-Wl,--no-as-needed", library},
	} {
		if output, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	if err := os.Remove(library); err != nil {
		t.Fatal(err)
	}
	if libs, err := libraries(program); err == nil || !strings.Contains(err.Error(), "libgone.so") {
		t.Errorf("the libraries of a program with a missing library are %v, %v", libs, err)
	}
}
