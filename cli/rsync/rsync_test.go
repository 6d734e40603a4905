package rsync

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/internal/archive/archivetest"
)

// container is an inContainer that runs commands in a directory on this machine.
func container(directory string) inContainer {
	return func(ctx context.Context, words []string, streams genericiooptions.IOStreams) error {
		command := exec.CommandContext(ctx, words[0], words[1:]...)
		command.Dir, command.Stdout, command.Stderr = directory, streams.Out, streams.ErrOut
		if streams.In != nil {
			// Use a pipe, so that the function returns when the command exits, even if the rest of
			// the input is never read. The server does the same.
			stdin, err := command.StdinPipe()
			if err != nil {
				return err
			}
			go func() {
				_, _ = io.Copy(stdin, streams.In)
				_ = stdin.Close()
			}()
		}
		return command.Run()
	}
}

// tree returns the contents of the files below a directory, keyed by path. A link's content is "->
// TARGET". Directory paths end with a slash.
func tree(t *testing.T, directory string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(directory, func(file string, entry fs.DirEntry, err error) error {
		name, relative := filepath.Rel(directory, file)
		if err = errors.Join(err, relative); err != nil || name == "." {
			return err
		}
		switch {
		case entry.IsDir():
			all[name+"/"] = ""
		case entry.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(file)
			all[name] = "-> " + target
			return err
		default:
			content, err := os.ReadFile(file)
			all[name] = string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// write creates files from a map that has the same format as tree's result. It returns the
// directory.
func write(t *testing.T, directory string, files map[string]string) string {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(directory, name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if target, link := strings.CutPrefix(content, "-> "); link {
			err = errors.Join(err, os.Symlink(target, file))
		} else if strings.HasSuffix(name, "/") {
			err = errors.Join(err, os.MkdirAll(file, 0o755))
		} else {
			err = errors.Join(err, os.WriteFile(file, []byte(content), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestDirectoriesAreCopiedBothWays(t *testing.T) {
	source := map[string]string{"a": "1", "sub/b.txt": "2", "sub/deep/c": "3", "sub/link": "-> ../a", "empty/": "", "-f": "4", "with space\n": "5"}
	before := map[string]string{"old": "0", "keep.log": "0", "dir/old": "0", "dir/keep.log": "0", "src/sub/old": "0", "a": "0"}
	for name, c := range map[string]struct {
		change func(*sync)
		slash  string
		want   map[string]string
	}{
		"content": {slash: "/", want: map[string]string{
			"-f": "4", "a": "1", "dir/": "", "dir/keep.log": "0", "dir/old": "0", "empty/": "", "keep.log": "0", "old": "0", "src/": "", "src/sub/": "",
			"src/sub/old": "0", "sub/": "", "sub/b.txt": "2", "sub/deep/": "", "sub/deep/c": "3", "sub/link": "-> ../a", "with space\n": "5"}},
		"directory": {change: func(s *sync) { s.filter.exclude = []string{"deep/", "?"} }, want: map[string]string{
			"a": "0", "dir/": "", "dir/keep.log": "0", "dir/old": "0", "keep.log": "0", "old": "0", "src/": "", "src/-f": "4", "src/empty/": "", "src/sub/": "",
			"src/sub/b.txt": "2", "src/sub/link": "-> ../a", "src/sub/old": "0", "src/with space\n": "5"}},
		"mirror": {slash: "/", change: func(s *sync) { s.remove, s.filter.exclude = true, []string{"*.log", "sub"} }, want: map[string]string{
			"-f": "4", "a": "1", "dir/": "", "dir/keep.log": "0", "empty/": "", "keep.log": "0", "src/": "", "src/sub/": "", "src/sub/old": "0", "with space\n": "5"}},
		"mirror directory": {change: func(s *sync) { s.remove = true }, want: map[string]string{
			"a": "0", "dir/": "", "dir/keep.log": "0", "dir/old": "0", "keep.log": "0", "old": "0", "src/": "", "src/-f": "4", "src/a": "1", "src/empty/": "", "src/sub/": "",
			"src/sub/b.txt": "2", "src/sub/deep/": "", "src/sub/deep/c": "3", "src/sub/link": "-> ../a", "src/with space\n": "5"}},
	} {
		for _, up := range []bool{true, false} {
			from, to := write(t, filepath.Join(t.TempDir(), "src"), source), write(t, t.TempDir(), before)
			s := &sync{in: container(t.TempDir()), from: place{path: from + c.slash}, to: place{path: to}, IOStreams: genericiooptions.IOStreams{Out: t.Output(), ErrOut: t.Output()}}
			if s.to.pod = "web"; !up {
				s.from.pod, s.to.pod = "web", ""
			}
			if c.change != nil {
				c.change(s)
			}
			if err := s.byTar(t.Context()); err != nil {
				t.Errorf("%s, to the pod %t: %v", name, up, err)
				continue
			}
			if diff := cmp.Diff(c.want, tree(t, to)); diff != "" {
				t.Errorf("%s, to the pod %t (-want +got):\n%s", name, up, diff)
			}
		}
	}
}

func TestPermissionsAndTimesAreCopied(t *testing.T) {
	for _, plain := range []bool{false, true} {
		for _, up := range []bool{true, false} {
			from, to := t.TempDir(), t.TempDir()
			if err := errors.Join(os.WriteFile(filepath.Join(from, "run"), nil, 0o600), os.Chmod(filepath.Join(from, "run"), 0o710)); err != nil {
				t.Fatal(err)
			}
			s := &sync{in: container(to), noPerms: plain, from: place{path: from + "/"}, to: place{path: to}, IOStreams: genericiooptions.IOStreams{Out: t.Output(), ErrOut: t.Output()}}
			if s.to.pod = "web"; !up {
				s.from.pod, s.to.pod = "web", ""
			}
			if err := s.byTar(t.Context()); err != nil {
				t.Fatal(err)
			}
			source, err := os.Stat(filepath.Join(from, "run"))
			got, missing := os.Stat(filepath.Join(to, "run"))
			if err = errors.Join(err, missing); err != nil {
				t.Fatal(err)
			}
			want := fs.FileMode(0o710)
			if plain {
				want = 0o755
			}
			if got.Mode().Perm() != want || got.ModTime().Unix() != source.ModTime().Unix() {
				t.Errorf("plain %t, to the pod %t: %v of %v, want %v of %v", plain, up, got.Mode(), got.ModTime(), want, source.ModTime())
			}
		}
	}
}

// download returns a sync for which the container sends content as the archive.
func download(t *testing.T, content []byte, dir string) *sync {
	s := &sync{from: place{"web", "/data/"}, to: place{path: dir}, IOStreams: genericiooptions.IOStreams{Out: t.Output(), ErrOut: t.Output()}}
	s.in = func(_ context.Context, _ []string, streams genericiooptions.IOStreams) error {
		_, err := streams.Out.Write(content)
		return err
	}
	return s
}

func TestHostileArchiveStaysInItsDirectory(t *testing.T) {
	archivetest.Run(t, func(t *testing.T, attack archivetest.Attack, dir string) error {
		var warnings bytes.Buffer
		s := download(t, archivetest.Tar(t, attack.Entries...), dir)
		s.ErrOut = &warnings
		err := s.byTar(t.Context())
		if !attack.Harmless && err == nil && warnings.Len() == 0 {
			t.Error("neither an error nor a warning")
		}
		return err
	})
}

func TestArchiveWithHardLinkIsUnpacked(t *testing.T) {
	dir := t.TempDir()
	content := archivetest.Tar(t, tar.Header{Name: "x"}, tar.Header{Name: "y", Typeflag: tar.TypeLink, Linkname: "./x"})
	if err := download(t, content, dir).byTar(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"x": archivetest.Content, "y": archivetest.Content}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNothingIsDeletedAfterErrorInPod(t *testing.T) {
	to := write(t, t.TempDir(), map[string]string{"old": "0"})
	s := &sync{remove: true, from: place{"web", "/data/"}, to: place{path: to}, IOStreams: genericiooptions.IOStreams{Out: t.Output(), ErrOut: t.Output()}}
	s.in = func(context.Context, []string, genericiooptions.IOStreams) error { return errors.New("gone") }
	if err := s.byTar(t.Context()); err == nil || !strings.Contains(err.Error(), "gone") || tree(t, to)["old"] != "0" {
		t.Errorf("%v; there is %v", err, tree(t, to))
	}
	s.from, s.to = s.to, s.from
	if err := s.byTar(t.Context()); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("to the pod: %v", err)
	}
}

func TestPatternsSelectFiles(t *testing.T) {
	for _, c := range []struct {
		include, exclude string
		name             string
		want             bool
	}{
		{"", "*.log", "a/b.log", false}, {"", "*.log", "a.log/b", false}, {"", "/*.log", "a/b.log", true}, {"", "/a", "a/b", false},
		{"", "b/", "a/b", true}, {"", "b/", "b/c", false}, {"", "a/b", "x/a/b", false}, {"", "a/b", "xa/b", true}, {"b.log", "*.log", "a/b.log", true},
		{"a/", "*", "a/b", false}, {"", "", "a", true},
	} {
		if got := (filter{include: strings.Fields(c.include), exclude: strings.Fields(c.exclude)}).keeps(c.name, false); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

func TestRsyncReportsInvalidArguments(t *testing.T) {
	directory := write(t, t.TempDir(), map[string]string{"file": ""})
	for args, want := range map[[2]string]string{
		{"a", "b"}: "must be POD:PATH", {"p:a", "q:b"}: "must be POD:PATH", {directory + "/missing", "p:a"}: "no such file", {directory + "/file", "p:a"}: "not a directory",
		{directory + "/", "p:/"}: "--delete", {"./a:b", "c"}: "must be POD:PATH",
	} {
		if err := (&sync{remove: true}).read(args[:]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	for want, s := range map[string]*sync{
		"local source": {watch: true}, "--progress and --quiet": {progress: true, quiet: true}, "rsync-daemon or tar": {strategy: "ftp"}, "parse pattern": {filter: filter{exclude: []string{"[a"}}},
	} {
		if err := s.read([]string{"p:a", directory}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestRsyncGetsEquivalentFlags(t *testing.T) {
	s := &sync{remove: true, quiet: true, noPerms: true, filter: filter{include: []string{"a*"}, exclude: []string{"*"}}}
	want := []string{"--blocking-io", `--rsh='/opt/my oc' 'rsh' 'it''s'`, "--archive", "--omit-dir-times", "--numeric-ids", "--no-owner", "--no-group",
		"--delete", "--no-perms", "--quiet", "--include=a*", "--exclude=*", "--", "-x", "web:/b"}
	if diff := cmp.Diff(want, s.arguments("-x", "web:/b", "--blocking-io", "--rsh="+quote([]string{"/opt/my oc", "rsh", "it's"}))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDownloadCreatesNeitherSetIDProgramsNorPipes(t *testing.T) {
	from, to := write(t, t.TempDir(), map[string]string{"program": "1"}), t.TempDir()
	err := os.Chmod(filepath.Join(from, "program"), 0o755|fs.ModeSetuid|fs.ModeSetgid)
	if err := errors.Join(err, unix.Mkfifo(filepath.Join(from, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := &sync{from: place{"web", from + "/"}, to: place{path: to}, IOStreams: genericiooptions.IOStreams{Out: t.Output(), ErrOut: t.Output()}}
	// rsync adds the pod's name to the shell's command.
	if err := s.byRsync(t.Context(), []string{"sh", "-c", `shift && exec "$@"`, "sh"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"program": "1"}, tree(t, to)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if info, err := os.Stat(filepath.Join(to, "program")); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode of program is %v, %v", info.Mode(), err)
	}
}

func TestWatchCopiesChanges(t *testing.T) {
	from, to := write(t, t.TempDir(), map[string]string{"a": "1"}), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &sync{in: container(to), from: place{path: from + "/"}, to: place{"web", to}, IOStreams: genericiooptions.IOStreams{Out: t.Output(), ErrOut: t.Output()}}
	var values []string
	err := watch(ctx, from, func() error {
		if err := s.byTar(ctx); err != nil {
			return err
		}
		values = append(values, tree(t, to)["new/a"])
		switch {
		case len(values) == 1:
			write(t, from, map[string]string{"new/a": "2"})
		case values[len(values)-1] == "2":
			write(t, from, map[string]string{"new/a": "3"})
		case values[len(values)-1] == "3":
			cancel()
		}
		return nil
	}, func(err error) { t.Error(err) })
	if err != nil || !slices.Contains(values, "3") {
		t.Errorf("copied %q: %v", values, err)
	}
}
