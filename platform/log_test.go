package platform

import (
	"bytes"
	"errors"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

func TestLogsOfUpstreamLibrariesPassRedaction(t *testing.T) {
	var out bytes.Buffer
	setLogOutput(&out)
	t.Cleanup(func() {
		klog.ClearLogger()
		log.SetOutput(os.Stderr)
	})
	const url = "https://bob:s3cret@git.example.com/app"
	klog.Infof("fetch %s", url)
	klog.ErrorS(errors.New("get "+url+": refused"), "fetch", "url", url)
	klog.FromContext(t.Context()).Info("fetch", "url", url)
	slog.Info("fetch", "url", url)
	if text := out.String(); strings.Contains(text, "s3cret") || strings.Count(text, "bob:<redacted>@") != 5 {
		t.Errorf("the log is %q", text)
	}
}

func TestALogThatGrewTooLargeIsCutAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log", "a.log")
	file, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("first\nsecond\n"); err != nil {
		t.Fatal(err)
	}
	if err := cutLog(path, 5); err != nil {
		t.Fatal(err)
	}
	// The process still has the file open and goes on at its new end.
	if _, err := file.WriteString("third\n"); err != nil {
		t.Fatal(err)
	}
	if got := lastLines(path, 10); !slices.Equal(got, []string{"third"}) {
		t.Errorf("log is %q", got)
	}
	if got := lastLines(path+".1", 10); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("old log is %q", got)
	}
}

func TestFollowedLinesAreWholeAndSurviveACut(t *testing.T) {
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
	offset, err := linesFrom(path, 0, emit)
	if err != nil {
		t.Fatal(err)
	}
	write("one\ntwo\nhalf\n")
	if offset, err = linesFrom(path, offset, emit); err != nil {
		t.Fatal(err)
	}
	write("new\n")
	if _, err = linesFrom(path, offset, emit); err != nil {
		t.Fatal(err)
	}
	if want := []string{"one", "two", "half", "new"}; !slices.Equal(got, want) {
		t.Errorf("lines are %q, want %q", got, want)
	}
}

func TestLogsOfSeveralProcessesAreLabelled(t *testing.T) {
	dir := t.TempDir()
	logs := map[string]string{}
	for _, name := range []string{"node", "containerd"} {
		logs[name] = filepath.Join(dir, name)
		if err := os.WriteFile(logs[name], []byte("hello from "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := printLogs(t.Context(), &out, logs, 10, false); err != nil {
		t.Fatal(err)
	}
	const want = "containerd    | hello from containerd\nnode          | hello from node\n"
	if out.String() != want {
		t.Errorf("output is %q, want %q", out.String(), want)
	}
}

func TestAPartIsFoundInItsProcess(t *testing.T) {
	for part, want := range map[string]string{"kubelet": "node", "etcd": "control-plane", "node": "node", "slipway": "slipway", "containerd": "containerd"} {
		if got, err := processOf(part); err != nil || got != want {
			t.Errorf("%s is in %q (%v), want %q", part, got, err, want)
		}
	}
	if _, err := processOf("docker"); err == nil || !strings.Contains(err.Error(), "there are: allocator, api, apiserver") {
		t.Errorf("error is %v", err)
	}
}
