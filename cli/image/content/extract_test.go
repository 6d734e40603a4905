package content

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/archive/archivetest"
)

// tree returns the content of a directory, keyed by relative path. The values are the content of
// files, the targets of links, and "/" for directories.
func tree(t *testing.T, directory string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(directory, func(path string, item os.DirEntry, err error) error {
		if err != nil || path == directory {
			return err
		}
		at := strings.TrimPrefix(path, directory+"/")
		switch {
		case item.IsDir():
			files[at] = "/"
		case item.Type()&os.ModeSymlink != 0:
			files[at], err = os.Readlink(path)
		default:
			var content []byte
			content, err = os.ReadFile(path)
			files[at] = string(content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// has checks that a directory contains the entries in want and no other entries.
func has(t *testing.T, directory string, want map[string]string) {
	t.Helper()
	got := tree(t, directory)
	for path, content := range want {
		if got[path] != content {
			t.Errorf("%s is %q, want %q", path, got[path], content)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("unexpected file %s, %q", path, got[path])
		}
	}
}

func TestExtractWritesFiles(t *testing.T) {
	host := serve(t)
	push(t, host+"/app:v1", image(t, "linux/amd64",
		tarLayer(t, entry{name: "./"}, entry{name: "etc/"}, entry{name: "etc/a", content: "old"}, entry{name: "etc/gone", content: "x"}, entry{name: "var/"},
			entry{name: "var/b", content: "b"}, entry{name: "was/"}, entry{name: "was/in", content: "w"}, entry{name: "full/one", content: "1"},
			entry{name: "orig", content: "original"}, entry{name: "hard", kind: tar.TypeLink, link: "orig"}),
		tarLayer(t, entry{name: "etc/a", content: "new"}, entry{name: "etc/.wh.gone"}, entry{name: ".wh.was"}, entry{name: "full/.wh..wh..opq"},
			entry{name: "full/two", content: "2"}, entry{name: "orig", content: "replaced"}, entry{name: "link", kind: tar.TypeSymlink, link: "/etc/a"})))
	for name, tt := range map[string]struct {
		args []string
		want map[string]string
	}{
		"everything": {[]string{"--path", "/:DIR"}, map[string]string{"etc": "/", "etc/a": "new", "var": "/", "var/b": "b", "full": "/", "full/two": "2",
			"orig": "replaced", "hard": "original", "link": "/etc/a"}},
		"a directory's content": {[]string{"--path", "/etc/:DIR"}, map[string]string{"a": "new"}},
		"a directory":           {[]string{"--path", "/etc:DIR"}, map[string]string{"etc": "/", "etc/a": "new"}},
		"a pattern":             {[]string{"--path", "/*/b:DIR", "--path", "/hard:DIR"}, map[string]string{"b": "b", "hard": "original"}},
		"files":                 {[]string{"--file", "/etc/a", "--file", "var/b"}, map[string]string{"a": "new", "b": "b"}},
		"files only":            {[]string{"--path", "/:DIR", "--only-files", "LAYERS[1]"}, map[string]string{"etc": "/", "etc/a": "new", "full": "/", "full/two": "2", "orig": "replaced"}},
		"the first layer":       {[]string{"--path", "/etc/:DIR", "LAYERS[0]"}, map[string]string{"a": "old", "gone": "x"}},
		"the last layer":        {[]string{"--path", "/o*:DIR", "LAYERS[-1]"}, map[string]string{"orig": "replaced"}},
		"a range of layers":     {[]string{"--path", "/o*:DIR", "LAYERS[:1]"}, map[string]string{"orig": "original"}},
		"a trial":               {[]string{"--path", "/:DIR", "--dry-run"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			args, layers := []string{"extract"}, ""
			for _, arg := range tt.args {
				if selection, ok := strings.CutPrefix(arg, "LAYERS"); ok {
					layers = selection
					continue
				}
				args = append(args, strings.Replace(arg, "DIR", dir, 1))
			}
			if _, _, err := oc(t, append(args, host+"/app:v1"+layers)...); err != nil {
				t.Fatal(err)
			}
			has(t, dir, tt.want)
		})
	}
}

func TestExtractWritesNothingOutsideDirectories(t *testing.T) {
	host, outside := serve(t), t.TempDir()
	secret := write(t, outside, "secret", []byte("mine"))
	push(t, host+"/bad:v1", image(t, "linux/amd64",
		tarLayer(t, entry{name: "../up", content: "1"}, entry{name: "/root", content: "2"}, entry{name: "a/../../b", content: "3"},
			entry{name: "away", kind: tar.TypeSymlink, link: outside}, entry{name: "away/secret", content: "4"},
			entry{name: "hard", kind: tar.TypeLink, link: "../../.." + secret}, entry{name: "disk", kind: tar.TypeBlock}, entry{name: "pipe", kind: tar.TypeFifo},
			entry{name: "suid", content: "5", mode: 0o4755}),
		tarLayer(t, entry{name: "away2/secret", content: "6"}, entry{name: ".wh...", content: ""})))
	parent := t.TempDir()
	dir := filepath.Join(parent, "in")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, warnings, err := oc(t, "extract", host+"/bad:v1", "--path", "/:"+dir)
	if err != nil {
		t.Fatal(err)
	}
	has(t, dir, map[string]string{"up": "1", "root": "2", "b": "3", "away": outside, "suid": "5", "away2": "/", "away2/secret": "6"})
	has(t, parent, map[string]string{"in": "/", "in/up": "1", "in/root": "2", "in/b": "3", "in/away": outside, "in/suid": "5", "in/away2": "/", "in/away2/secret": "6"})
	has(t, outside, map[string]string{"secret": "mine"})
	for _, want := range []string{"disk", "pipe", "hard"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no message about %s:\n%s", want, warnings)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "suid")); err != nil || info.Mode()&os.ModeSetuid != 0 {
		t.Errorf("a file is setuid: %v, %v", info, err)
	}

	push(t, host+"/bad:v3", image(t, "linux/amd64", tarLayer(t, entry{name: "title\x1b]0;mine\a", content: "8"})))
	if out, _, err := oc(t, "extract", host+"/bad:v3", "--dry-run"); err != nil || strings.Contains(out, "\x1b") || !strings.Contains(out, "title") {
		t.Errorf("a dry run prints %q, %v", out, err)
	}

	// The command must not follow links that already exist in the directory.
	if err := os.Symlink(outside, filepath.Join(dir, "b2")); err != nil {
		t.Fatal(err)
	}
	push(t, host+"/bad:v2", image(t, "linux/amd64", tarLayer(t, entry{name: "b2/secret", content: "7"})))
	fails(t, "b2", "extract", host+"/bad:v2", "--path", "/:"+dir, "--confirm")
	has(t, outside, map[string]string{"secret": "mine"})
}

func TestExtractReportsInvalidArguments(t *testing.T) {
	host, dir := serve(t), t.TempDir()
	write(t, dir, "there", nil)
	push(t, host+"/app:v1", image(t, "linux/amd64", tarLayer(t, entry{name: "etc/a", content: "1"}, entry{name: "link", kind: tar.TypeSymlink, link: "etc/a"})))
	app, empty := host+"/app:v1", t.TempDir()
	fails(t, "use --confirm", "extract", app, "--path", "/:"+dir)
	fails(t, "create it first", "extract", app, "--path", "/:"+dir+"/none")
	fails(t, "SOURCE:DIRECTORY", "extract", app, "--path", "/")
	fails(t, "the image does not have /nothing", "extract", app, "--path", "/nothing:"+empty)
	fails(t, "has 1 layers", "extract", app+"[3]", "--path", "/:"+empty)
	fails(t, "in brackets", "extract", app+"[a]", "--path", "/:"+empty)
	fails(t, "specify one image", "extract")
	t.Chdir(empty)
	fails(t, `is a link to "etc/a"`, "extract", app, "--file", "link")
	if _, _, err := oc(t, "extract", app, "--path", "/etc/:"+dir, "--confirm"); err != nil {
		t.Fatal(err)
	}
	has(t, dir, map[string]string{"there": "", "a": "1"})
}

func TestExtractRejectsAttacks(t *testing.T) {
	host := serve(t)
	archivetest.Run(t, func(t *testing.T, attack archivetest.Attack, dir string) error {
		push(t, host+"/attack:v1", image(t, "linux/amd64", archivetest.Tar(t, attack.Entries...)))
		_, _, err := oc(t, "extract", host+"/attack:v1", "--path", "/:"+dir, "--confirm")
		return err
	})
}
