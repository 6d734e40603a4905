package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/payload/manifest"
)

// fakeFiles returns embedded files with programs that print their name and version.
func fakeFiles(t *testing.T, version string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	var m manifest.Manifest
	for _, name := range manifest.Names() {
		content := []byte("#!/bin/sh\necho " + name + " " + version + "\n")
		sum := sha256.Sum256(content)
		m.Programs = append(m.Programs, manifest.Program{Name: name, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])})
		files[name+".zst"] = &fstest.MapFile{Data: compress(t, content)}
	}
	setManifest(t, files, m)
	return files
}

func compress(t *testing.T, content []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	encoder, err := zstd.NewWriter(&buffer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := encoder.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := encoder.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func setManifest(t *testing.T, files fstest.MapFS, m manifest.Manifest) {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	files[manifest.File] = &fstest.MapFile{Data: data}
}

func mustUnpack(t *testing.T, files fs.FS, dir string) Programs {
	t.Helper()
	target, err := unpack(files, dir, manifest.OfContainerd()...)
	if err != nil {
		t.Fatal(err)
	}
	return programs(target)
}

// output runs a program and returns its output.
func output(t *testing.T, path string, args ...string) string {
	t.Helper()
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", path, err, out)
	}
	return strings.TrimSpace(string(out))
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		t.Fatal(err)
	}
	return stat.Ino
}

func TestUnpackedProgramsRun(t *testing.T) {
	programs := mustUnpack(t, fakeFiles(t, "1"), filepath.Join(t.TempDir(), "new", "bin"))
	got := []string{
		output(t, programs.Containerd), output(t, programs.Shim), output(t, programs.Runc),
		output(t, programs.CNI), output(t, programs.Pause),
	}
	want := []string{"containerd 1", "containerd-shim-runc-v2 1", "runc 1", "slipway-cni 1", "pause 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestIntactProgramsAreNotRewritten(t *testing.T) {
	dir, files := t.TempDir(), fakeFiles(t, "1")
	before := inode(t, mustUnpack(t, files, dir).Runc)
	if after := inode(t, mustUnpack(t, files, dir).Runc); after != before {
		t.Errorf("the program was written again: inode %d, before %d", after, before)
	}
}

func TestDamagedProgramsAreReplaced(t *testing.T) {
	damages := map[string]func(path string) error{
		"removed":        os.Remove,
		"truncated":      func(path string) error { return os.Truncate(path, 3) },
		"not executable": func(path string) error { return os.Chmod(path, 0o644) },
		"same size, other content": func(path string) error {
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = file.WriteAt([]byte("X"), 12)
			return err
		},
		"directory removed": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			dir, files := t.TempDir(), fakeFiles(t, "1")
			if err := damage(mustUnpack(t, files, dir).Runc); err != nil {
				t.Fatal(err)
			}
			if got := output(t, mustUnpack(t, files, dir).Runc); got != "runc 1" {
				t.Errorf("runc prints %q", got)
			}
			assertClean(t, dir, 1)
		})
	}
}

// assertClean checks that dir contains the given number of versions and, apart from these, only the
// lock.
func assertClean(t *testing.T, dir string, versions int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if len(names) != versions+1 || names[0] != ".lock" {
		t.Errorf("%d versions expected in %q", versions, names)
	}
}

func TestOldVersionsAreRemovedUnlessInUse(t *testing.T) {
	dir := t.TempDir()
	old := mustUnpack(t, fakeFiles(t, "1"), dir)
	// The process of a script executes the script's interpreter, so use a binary instead of a
	// script.
	sleep := filepath.Join(old.Dir, "sleep")
	if err := copyFile("/bin/sleep", sleep); err != nil {
		t.Fatal(err)
	}
	process := exec.Command(sleep, "60")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	mustUnpack(t, fakeFiles(t, "2"), dir)
	assertClean(t, dir, 2)
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()
	mustUnpack(t, fakeFiles(t, "2"), dir)
	assertClean(t, dir, 1)
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

func TestForeignFilesAreKept(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "crictl")
	if err := os.WriteFile(foreign, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	mustUnpack(t, fakeFiles(t, "1"), dir)
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
}

func TestSupervisorIsUnpackedAlone(t *testing.T) {
	dir := t.TempDir()
	target, err := unpack(fakeFiles(t, "1"), dir, manifest.Supervisor)
	if err != nil {
		t.Fatal(err)
	}
	if got := output(t, filepath.Join(target, manifest.Supervisor)); got != "slipway-supervisor 1" {
		t.Errorf("it prints %q", got)
	}
	if files, err := os.ReadDir(target); err != nil || len(files) != 1 {
		t.Errorf("the directory contains %v, %v", files, err)
	}
}

func TestMissingPayloadNamesRemedy(t *testing.T) {
	incomplete := fakeFiles(t, "1")
	m, err := manifest.Read(incomplete)
	if err != nil {
		t.Fatal(err)
	}
	m.Programs = m.Programs[1:]
	setManifest(t, incomplete, m)
	for name, files := range map[string]fs.FS{"none": fstest.MapFS{"README": &fstest.MapFile{}}, "incomplete": incomplete} {
		_, err := unpack(files, t.TempDir(), manifest.OfContainerd()...)
		if !errors.Is(err, ErrNotEmbedded) || !strings.Contains(err.Error(), "make build") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestDamagedPayloadIsAnError(t *testing.T) {
	dir, files := t.TempDir(), fakeFiles(t, "1")
	files["runc.zst"] = &fstest.MapFile{Data: compress(t, []byte("something else"))}
	_, err := unpack(files, dir, manifest.OfContainerd()...)
	if err == nil || !strings.Contains(err.Error(), "/runc") || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("error %v", err)
	}
	assertClean(t, dir, 0)
}

// TestFullDiskNamesFileAndSpace uses a small tmpfs. In the second case, the size in the manifest is
// too small.
func TestFullDiskNamesFileAndSpace(t *testing.T) {
	for name, size := range map[string]int64{"known before": 3_000_000, "detected while writing": 10} {
		t.Run(name, func(t *testing.T) {
			dir, files := t.TempDir(), fakeFiles(t, "1")
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
			noise := make([]byte, 3_000_000)
			sum := sha256.Sum256(noise)
			m, err := manifest.Read(files)
			if err != nil {
				t.Fatal(err)
			}
			m.Programs[0].Size, m.Programs[0].SHA256 = size, hex.EncodeToString(sum[:])
			setManifest(t, files, m)
			files["containerd.zst"] = &fstest.MapFile{Data: compress(t, noise)}

			_, err = unpack(files, dir, manifest.OfContainerd()...)
			if !errors.Is(err, unix.ENOSPC) {
				t.Fatalf("error %v, want no space", err)
			}
			for _, part := range []string{dir, "MB are needed", "MB are free", "free some space"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
			if err := os.Mkdir(filepath.Join(dir, "room"), 0o755); err != nil {
				t.Errorf("the partial programs still fill the disk: %v", err)
			}
		})
	}
}

// unpackTo is an environment variable that makes the test binary unpack the real payload to a
// directory.
const unpackTo = "PAYLOAD_TEST_UNPACK_TO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(unpackTo); dir != "" {
		if _, err := Unpack(dir); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestKillDuringUnpackingIsRepaired(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), unpackTo+"="+dir)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- child.Wait() }()
	killed := false
	for !killed {
		select {
		case err := <-done:
			t.Fatalf("the child ended before it was killed (%v): run make build first", err)
		case <-time.After(time.Millisecond):
		}
		if matches, _ := filepath.Glob(filepath.Join(dir, partial+"*", manifest.Containerd)); len(matches) > 0 {
			killed = child.Process.Kill() == nil
		}
	}
	<-done

	programs, err := Unpack(dir)
	if err != nil {
		t.Fatal(err)
	}
	assertClean(t, dir, 1)
	for path, want := range map[string]string{programs.Containerd: "v2.", programs.Shim: "v2.", programs.Runc: "runc version"} {
		if got := output(t, path, "-v"); !strings.Contains(got, want) {
			t.Errorf("%s -v prints %q, want %q in it", path, got, want)
		}
	}
}

func TestConcurrentUnpack(t *testing.T) {
	dir := t.TempDir()
	var children []*exec.Cmd
	for range 3 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), unpackTo+"="+dir)
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, child)
	}
	for _, child := range children {
		if err := child.Wait(); err != nil {
			t.Errorf("%v: run make build first?", err)
		}
	}
	assertClean(t, dir, 1)
}
