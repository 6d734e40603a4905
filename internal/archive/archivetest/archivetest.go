// Package archivetest provides hostile archives that every extractor must handle.
package archivetest

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Content is the content of each file in an archive that Tar creates.
const Content = "hostile"

const secretContent = "secret of the host"

// Attack is an archive that tries to read or write files outside the target directory. The target
// directory's parent also contains the directory "outside" with the file "secret". The target
// directory contains the link "existing" to "outside".
type Attack struct {
	Name    string
	Entries []tar.Header
	// Harmless is set if an extractor can extract the archive without an error or a warning.
	Harmless bool
}

func file(name string) tar.Header { return tar.Header{Name: name} }

func dir(name string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o777}
}

func symlink(name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
}

func hardlink(name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target}
}

// Attacks returns all attacks. outside is the path of the directory "outside".
func Attacks(outside string) []Attack {
	secret := filepath.Join(outside, "secret")
	entries := func(headers ...tar.Header) []tar.Header { return headers }
	return []Attack{
		{Name: "name with parent", Entries: entries(file("../outside/new"))},
		{Name: "name with hidden parent", Entries: entries(file("a/../../outside/new"))},
		{Name: "absolute name", Entries: entries(file(outside + "/new"))},
		{Name: "name below absolute link", Entries: entries(symlink("link", outside), file("link/new"))},
		{Name: "name below relative link", Entries: entries(symlink("link", "../outside"), file("link/new"))},
		{Name: "name below link in archive", Entries: entries(
			dir("top"), symlink("p/q/b", "../../top"), symlink("p/q/a", "b/../../outside"), file("p/q/a/new"))},
		{Name: "name below existing link", Entries: entries(file("existing/new"))},
		{Name: "directory below link", Entries: entries(symlink("link", outside), dir("link/new"))},
		{Name: "directory over link", Entries: entries(symlink("link", outside), dir("link/"), file("link/new"))},
		{Name: "link over directory", Entries: entries(file("sub/file"), symlink("sub", outside), file("sub/new"))},
		{Name: "link over root", Entries: entries(symlink(".", outside), file("../outside/new"))},
		{Name: "file over link", Entries: entries(symlink("link", secret), file("link")), Harmless: true},
		{Name: "file over existing link", Entries: entries(file("existing")), Harmless: true},
		{Name: "hard link with parent", Entries: entries(hardlink("hard", "../outside/secret"))},
		{Name: "absolute hard link", Entries: entries(hardlink("hard", secret))},
		{Name: "hard link through link", Entries: entries(symlink("link", outside), hardlink("hard", "link/secret"))},
		{Name: "hard link through existing link", Entries: entries(hardlink("hard", "existing/secret"))},
		{Name: "hard link that moves link", Entries: entries(symlink("p/a", "../outside"), hardlink("a", "p/a"), file("a/new"))},
		{Name: "character device", Entries: entries(tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3})},
		{Name: "block device", Entries: entries(tar.Header{Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 8})},
		{Name: "pipe", Entries: entries(tar.Header{Name: "pipe", Typeflag: tar.TypeFifo})},
		{Name: "set-ID file", Entries: entries(tar.Header{Name: "run", Mode: 0o6777}), Harmless: true},
	}
}

// Tar returns a tar archive. An entry whose type is not set is a file.
func Tar(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, header := range headers {
		content := ""
		if header.Typeflag == 0 {
			header.Typeflag, content = tar.TypeReg, Content
		}
		header.Size = int64(len(content))
		if header.Mode == 0 {
			header.Mode = 0o644
		}
		if err := writer.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(writer, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// Run extracts all attacks. An extractor can return an error, or skip entries. The test fails if
// anything outside the target directory changes. It also fails if the target directory then
// contains the secret's content, a device, a pipe or a set-ID file.
func Run(t *testing.T, extract func(t *testing.T, attack Attack, dir string) error) {
	for i := range Attacks("") {
		parent := t.TempDir()
		outside, target := filepath.Join(parent, "outside"), filepath.Join(parent, "target")
		attack := Attacks(outside)[i]
		t.Run(attack.Name, func(t *testing.T) {
			for _, dir := range []string{outside, target} {
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(outside, "secret"), []byte(secretContent), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("../outside", filepath.Join(target, "existing")); err != nil {
				t.Fatal(err)
			}
			if err := extract(t, attack, target); err != nil {
				t.Logf("extractor returns: %v", err)
			}
			checkParent(t, parent)
			checkTarget(t, target)
		})
	}
}

// checkParent verifies that nothing except the target directory has changed.
func checkParent(t *testing.T, parent string) {
	t.Helper()
	for dir, want := range map[string]string{parent: "outside target", filepath.Join(parent, "outside"): "secret"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s contains %q, want %q", dir, got, want)
		}
	}
	secret := filepath.Join(parent, "outside", "secret")
	content, err := os.ReadFile(secret)
	if err != nil || string(content) != secretContent {
		t.Errorf("secret is %q, %v", content, err)
	}
	info, err := os.Stat(secret)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode of secret is %v, %v", info.Mode(), err)
	}
	info, err = os.Stat(filepath.Dir(secret))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode of outside is %v, %v", info.Mode(), err)
	}
}

// checkTarget verifies that the target directory contains only ordinary files, directories and
// links, but not the secret.
func checkTarget(t *testing.T, target string) {
	t.Helper()
	err := filepath.WalkDir(target, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch mode := info.Mode(); {
		case mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0:
			t.Errorf("%s has mode %v", name, mode)
		case mode.IsRegular():
			if content, err := os.ReadFile(name); err != nil || string(content) == secretContent {
				t.Errorf("%s contains %q, %v", name, content, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
