package logfile

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestLargeLogIsRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log", "a.log")
	file, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("first\nsecond\n"); err != nil {
		t.Fatal(err)
	}
	if err := rotate(path, 5); err != nil {
		t.Fatal(err)
	}
	// The process keeps the file open and appends at its new end.
	if _, err := file.WriteString("third\n"); err != nil {
		t.Fatal(err)
	}
	if got := LastLines(path, 10); !slices.Equal(got, []string{"third"}) {
		t.Errorf("log is %q", got)
	}
	if got := LastLines(path+".1", 10); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("old log is %q", got)
	}
}

func TestReadLinesReturnsWholeLinesAlsoAfterTruncation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	emit := func(line string) { got = append(got, line) }
	write("one\ntwo\nhal")
	offset, err := readLines(path, 0, emit)
	if err != nil {
		t.Fatal(err)
	}
	write("one\ntwo\nhalf\n")
	if offset, err = readLines(path, offset, emit); err != nil {
		t.Fatal(err)
	}
	write("new\n")
	if _, err = readLines(path, offset, emit); err != nil {
		t.Fatal(err)
	}
	if want := []string{"one", "two", "half", "new"}; !slices.Equal(got, want) {
		t.Errorf("lines are %q, want %q", got, want)
	}
}

func TestLinesOfSeveralProcessesHaveTheirNames(t *testing.T) {
	dir := t.TempDir()
	paths := map[string]string{}
	for _, name := range []string{"node", "containerd"} {
		paths[name] = filepath.Join(dir, name)
		if err := os.WriteFile(paths[name], []byte("hello from "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := Print(t.Context(), &out, paths, 10, false); err != nil {
		t.Fatal(err)
	}
	const want = "containerd    | hello from containerd\nnode          | hello from node\n"
	if out.String() != want {
		t.Errorf("output is %q, want %q", out.String(), want)
	}
}
