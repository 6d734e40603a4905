package flexvolume

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// install writes the shell driver "example.com/test" to a new plugin directory and returns the
// driver's path.
func install(t *testing.T, script string) string {
	t.Helper()
	path := executable(t.TempDir(), "example.com/test")
	write(t, path, "#!/bin/sh\n"+script)
	return path
}

// write creates an executable in the way that drivers are installed: it writes a dot file, then
// renames it.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	partial := filepath.Join(filepath.Dir(path), ".new")
	if err := os.WriteFile(partial, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(partial, path); err != nil {
		t.Fatal(err)
	}
}

func newTestDriver(t *testing.T, script string) *Driver {
	t.Helper()
	return NewDriver("example.com/test", install(t, script), Settings{})
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestArgumentsOfEachOperation(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	driver := newTestDriver(t, `for a; do printf '%s\n' "$a"; done >>`+log+`; echo -- >>`+log+`
echo '{"status":"Success","device":"/dev/x","volumeName":"v/1","attached":true,"volumeNewSize":7}'`)
	ctx := context.Background()
	volume := Volume{Name: "pv1", FSType: "ext4", Options: map[string]string{"b": "a<&>b", "a": "ü x\"'"}}
	const input = `{"a":"ü x\"'","b":"a\u003c\u0026\u003eb","kubernetes.io/fsType":"ext4","kubernetes.io/pvOrVolumeName":"pv1","kubernetes.io/readwrite":"rw"}`
	group := int64(42)
	const mountInput = `{"kubernetes.io/fsGroup":"42","kubernetes.io/fsType":"","kubernetes.io/mounterArgs.FsGroup":"42",` +
		`"kubernetes.io/pod.name":"p","kubernetes.io/pod.namespace":"n","kubernetes.io/pod.uid":"u","kubernetes.io/pvOrVolumeName":"pv2",` +
		`"kubernetes.io/readwrite":"ro","kubernetes.io/secret/key":"cGFzcw==","kubernetes.io/serviceAccount.name":"s"}`
	mounting := MountRequest{
		Volume: Volume{Name: "pv2", ReadOnly: true}, Pod: Pod{Name: "p", Namespace: "n", UID: "u", ServiceAccount: "s"},
		FSGroup: &group, Secrets: map[string][]byte{"key": []byte("pass")},
	}
	var got []any
	note := func(values ...any) { got = append(got, values...) }
	for _, test := range []struct {
		want []string
		call func() error
	}{
		{[]string{"init"}, func() error { caps, err := driver.Init(ctx); note(caps); return err }},
		{[]string{"getvolumename", input}, func() error { name, _, err := driver.VolumeName(ctx, volume); note(name); return err }},
		{[]string{"attach", input, "node"}, func() error { dev, err := driver.Attach(ctx, volume, "node"); note(dev); return err }},
		{[]string{"waitforattach", "/dev/y", input}, func() error { dev, err := driver.WaitForAttach(ctx, "/dev/y", volume); note(dev); return err }},
		{[]string{"isattached", input, "node"}, func() error { is, err := driver.IsAttached(ctx, volume, "node"); note(is); return err }},
		{[]string{"mountdevice", "/d", "/dev/y", input}, func() error { return driver.MountDevice(ctx, "/d", "/dev/y", volume) }},
		{[]string{"mount", "/m", mountInput}, func() error { return driver.Mount(ctx, "/m", mounting) }},
		{[]string{"expandvolume", input, "/d", "20", "10"}, func() error {
			size, err := driver.ExpandVolume(ctx, volume, "/d", 20, 10)
			note(size)
			return err
		}},
		{[]string{"expandfs", input, "/dev/y", "/d", "20", "10"}, func() error { return driver.ExpandFS(ctx, volume, "/dev/y", "/d", 20, 10) }},
		{[]string{"unmount", "/m"}, func() error { return driver.Unmount(ctx, "/m") }},
		{[]string{"unmountdevice", "/d"}, func() error { return driver.UnmountDevice(ctx, "/d") }},
		{[]string{"detach", "v~1", "node"}, func() error { return driver.Detach(ctx, "v~1", "node") }},
	} {
		if err := os.RemoveAll(log); err != nil {
			t.Fatal(err)
		}
		if err := test.call(); err != nil {
			t.Fatalf("%s: %v", test.want[0], err)
		}
		if diff := cmp.Diff(strings.Join(test.want, "\n")+"\n--\n", read(t, log)); diff != "" {
			t.Errorf("%s: arguments (-want +got):\n%s", test.want[0], diff)
		}
	}
	want := []any{DefaultCapabilities(), "v~1", "/dev/x", "/dev/x", true, int64(7)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("responses (-want +got):\n%s", diff)
	}
}

func TestReservedOptionsAreRejected(t *testing.T) {
	driver := newTestDriver(t, `echo '{"status":"Success"}'`)
	for option, refused := range map[string]bool{
		"kubernetes.io/pod.namespace": true, "Kubernetes.IO/fsType": true, "x.k8s.io/y": true, "kubernetes.io": true, "a.kubernetes.io/b/c": true,
		"mykubernetes.io/x": false, "example.com/kubernetes.io": false, "fsType": false,
	} {
		_, err := driver.Attach(context.Background(), Volume{Name: "v", Options: map[string]string{option: "x"}}, "node")
		if (err != nil) != refused {
			t.Errorf("option %q: error %v, want rejected %t", option, err, refused)
		}
	}
}

func TestInputOverKernelLimitIsRejected(t *testing.T) {
	driver := newTestDriver(t, `echo '{"status":"Success"}'`)
	_, err := driver.Attach(context.Background(), Volume{Name: "v", Options: map[string]string{"x": strings.Repeat("y", maxArgument)}}, "n")
	if err == nil || !strings.Contains(err.Error(), "over the kernel's limit of 131071") {
		t.Errorf("error %v", err)
	}
	base, err := Volume{Name: "v", Options: map[string]string{"x": ""}}.json()
	if err != nil {
		t.Fatal(err)
	}
	longest := Volume{Name: "v", Options: map[string]string{"x": strings.Repeat("y", maxArgument-len(base))}}
	if _, err := driver.Attach(context.Background(), longest, "n"); err != nil {
		t.Errorf("longest argument: %v", err)
	}
}

func TestUnsupportedOperationIsCalledOncePerVersion(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	driver := newTestDriver(t, `echo "$1" >>`+log+`; echo '{"status":"Not supported"}'; exit 1`)
	for range 3 {
		if err := driver.Detach(context.Background(), "v", "n"); !errors.Is(err, ErrNotSupported) {
			t.Fatalf("unexpected error: %v", err)
		}
	}
	if got := read(t, log); got != "detach\n" {
		t.Errorf("driver was called: %q", got)
	}
	if !driver.Unsupported(OpDetach) || driver.Unsupported(OpAttach) {
		t.Error("the wrong operations are recorded as unsupported")
	}
}

func TestVolumeName(t *testing.T) {
	for name, test := range map[string]struct {
		response string
		settings Settings
		want     string
		named    bool
		kind     Kind
	}{
		"name of the driver":         {`{"status":"Success","volumeName":"disk/7"}`, Settings{}, "disk~7", true, ""},
		"name of the volume":         {`{"status":"Success","volumeName":"pv1"}`, Settings{}, "pv1", true, ""},
		"no name":                    {`{"status":"Success"}`, Settings{}, "pv1", false, ""},
		"not supported":              {`{"status":"Not supported"}`, Settings{}, "pv1", false, ""},
		"overridden by the settings": {`{"status":"Success","volumeName":"disk"}`, Settings{VolumeName: NamingVolume}, "pv1", false, ""},
		"invalid directory name":     {`{"status":"Success","volumeName":".."}`, Settings{}, "", false, KindWrongType},
		"failure":                    {`{"status":"Failure"}`, Settings{}, "", false, KindFailure},
	} {
		t.Run(name, func(t *testing.T) {
			driver := NewDriver("example.com/test", install(t, "echo '"+test.response+"'"), test.settings)
			got, named, err := driver.VolumeName(context.Background(), Volume{Name: "pv1"})
			if got != test.want || named != test.named || KindOf(err) != test.kind {
				t.Errorf("got %q, %v, %v", got, named, err)
			}
		})
	}
}

func TestDeadlineKillsProcessGroup(t *testing.T) {
	for name, script := range map[string]string{
		"that hangs":                          `sleep 1000`,
		"that ignores SIGTERM":                `trap '' TERM; sleep 1000; sleep 1000`,
		"whose child keeps the output open":   `sleep 1000 & echo $! >"$0.child"; wait`,
		"that has ended while its child runs": `(trap '' TERM; sleep 1000; sleep 1000) & sleep 1000`,
		"that responds but does not exit":     `echo '{"status":"Success"}'; sleep 1000`,
		"that stops itself":                   `kill -STOP $$`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := install(t, `echo $$ >"$0.pid"; `+script)
			driver := NewDriver("example.com/test", path, Settings{Timeouts: map[Operation]time.Duration{OpMount: 300 * time.Millisecond}})
			err := driver.Mount(context.Background(), "/m", MountRequest{})
			if KindOf(err) != KindTimeout {
				t.Fatalf("error %v", err)
			}
			group, err := strconv.Atoi(strings.TrimSpace(read(t, path+".pid")))
			if err != nil {
				t.Fatal(err)
			}
			eventually.True(t, "process group is gone", func() bool { return syscall.Kill(-group, 0) == syscall.ESRCH })
		})
	}
}

func TestEndlessOutputKillsDriver(t *testing.T) {
	err := newTestDriver(t, `exec yes`).Mount(context.Background(), "/m", MountRequest{})
	if KindOf(err) != KindTooLong || !strings.Contains(err.Error(), `standard output "y\ny\n`) {
		t.Errorf("unexpected error: %v", err)
	}
}

func TestDaemonOutlivesCall(t *testing.T) {
	path := install(t, `(trap '' HUP; sleep 1000) & echo $! >"$0.daemon"; echo '{"status":"Success"}'`)
	driver := NewDriver("example.com/test", path, Settings{})
	// The call returns even though the daemon keeps its output open for a thousand seconds.
	if err := driver.Mount(context.Background(), "/m", MountRequest{}); err != nil {
		t.Fatal(err)
	}
	daemon, err := strconv.Atoi(strings.TrimSpace(read(t, path+".daemon")))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(daemon, 0); err != nil {
		t.Errorf("daemon: %v", err)
	}
	group, err := syscall.Getpgid(daemon)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(-group, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestResponseFromChildAfterDriverExits(t *testing.T) {
	driver := newTestDriver(t, `(sleep 0.3; echo '{"status":"Success"}') & exit 0`)
	if err := driver.Mount(context.Background(), "/m", MountRequest{}); err != nil {
		t.Error(err)
	}
}

func TestOperationsOfOneVolumeAreSerialized(t *testing.T) {
	dir := t.TempDir()
	driver := newTestDriver(t, `mkdir `+dir+`/busy || { echo '{"status":"Failure","message":"two at a time"}'; exit 1; }
sleep 0.05; rmdir `+dir+`/busy; echo '{"status":"Success"}'`)
	errs := make(chan error)
	volume := Volume{Name: "pv1"}
	for range 4 {
		go func() { _, err := driver.Attach(context.Background(), volume, "n"); errs <- err }()
		go func() { errs <- driver.UnmountDevice(context.Background(), "/mounts/pv1") }()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestHungVolumeBlocksOnlyItself(t *testing.T) {
	path := install(t, `case "$2" in /hung) sleep 1000;; esac; echo '{"status":"Success"}'`)
	driver := NewDriver("example.com/test", path, Settings{Timeouts: map[Operation]time.Duration{OpMountDevice: 300 * time.Millisecond}})
	ctx, cancel := context.WithCancel(context.Background())
	hung := make(chan error)
	go func() { hung <- driver.Unmount(ctx, "/hung") }()
	eventually.True(t, "the call hangs", func() bool {
		return KindOf(driver.MountDevice(context.Background(), "/x", "", Volume{Name: "hung"})) == KindBusy
	})
	if err := driver.Unmount(context.Background(), "/other"); err != nil {
		t.Errorf("another volume: %v", err)
	}
	cancel()
	if err := <-hung; KindOf(err) != KindCanceled {
		t.Errorf("canceled call: %v", err)
	}
	if err := driver.MountDevice(context.Background(), "/x", "", Volume{Name: "hung"}); err != nil {
		t.Errorf("after the hung call: %v", err)
	}
}

func TestErrorsContainNoSecrets(t *testing.T) {
	const secret = "s3cr\"et <&>\nline two\n"
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	for name, script := range map[string]string{
		"whole input":              `echo "$@"; echo "$@" >&2; exit 1`,
		"decoded":                  `echo "$3" | sed 's/.*secret.k":"\([^"]*\)".*/\1/' | base64 -d; exit 1`,
		"in a failure":             `printf '{"status":"Failure","message":"bad password: s3cr\\"et <&>\\nline two"}'`,
		"one line":                 `echo 'line two' >&2; exit 3`,
		"in a status":              `printf '{"status":"` + encoded + `"}'`,
		"in a megabyte":            `echo "$3"; head -c 1100000 /dev/zero | tr '\0' x; echo "$3"`,
		"truncated in a long text": `head -c 600 /dev/zero | tr '\0' x; echo '` + encoded + `'; head -c 490 /dev/zero | tr '\0' x`,
	} {
		t.Run(name, func(t *testing.T) {
			err := newTestDriver(t, script).Mount(context.Background(), "/m", MountRequest{Secrets: map[string][]byte{"k": []byte(secret)}})
			if err == nil {
				t.Fatal("no error")
			}
			for _, form := range []string{"s3cr", "line two", encoded[:8], encoded[len(encoded)-10:]} {
				if strings.Contains(err.Error(), form) {
					t.Errorf("%q is in: %v", form, err)
				}
			}
		})
	}
}

func TestExecutableThatCannotStart(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"no interpreter line": {"echo hello\n", "a script must begin with"},
		"unknown interpreter": {"#!/no/such/shell\n", "interpreter in its first line"},
	} {
		t.Run(name, func(t *testing.T) {
			path := executable(t.TempDir(), "x/y")
			write(t, path, test.content)
			_, err := NewDriver("x/y", path, Settings{}).Init(context.Background())
			if KindOf(err) != KindStart || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}
