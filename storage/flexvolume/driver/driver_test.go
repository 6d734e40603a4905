package driver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/storage/flexvolume/driver"
)

// The test executable is also the driver: when it is installed under a driver's name, it acts as
// that driver.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "directory":
		driver.Main(directory())
	case "everything":
		driver.Main(fullDriver())
	}
	os.Exit(m.Run())
}

// directory returns the example driver from the package comment.
func directory() driver.Driver {
	return driver.Driver{
		Mount: func(dir string, o driver.Options) error {
			base, err := o.Required("base")
			if err != nil {
				return err
			}
			source := filepath.Join(base, filepath.Base(o.Volume))
			if err := os.MkdirAll(source, 0o755); err != nil {
				return err
			}
			return driver.Bind(source, dir, o.ReadOnly)
		},
		Unmount: driver.Unmount,
	}
}

// fullDriver returns a driver with all operations. The driver writes its input to the file that is
// specified by an option or an environment variable.
func fullDriver() driver.Driver {
	note := func(values ...any) error {
		fmt.Println("this is for standard error")
		file, err := os.OpenFile(filepath.Join(filepath.Dir(os.Args[0]), "notes"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = fmt.Fprintln(file, values...)
		return err
	}
	return driver.Driver{
		Init:       func() error { return note("init") },
		VolumeName: func(o driver.Options) (string, error) { return "n/" + o.Volume, note("getvolumename", o.Volume) },
		Attach:     func(o driver.Options, node string) (string, error) { return "/dev/a", note("attach", o.Volume, node) },
		WaitForAttach: func(device string, o driver.Options) (string, error) {
			return device, note("waitforattach", device, o.FSType)
		},
		IsAttached: func(o driver.Options, node string) (bool, error) { return node == "here", note("isattached", node) },
		Detach:     func(name, node string) error { return note("detach", name, node) },
		MountDevice: func(dir, device string, o driver.Options) error {
			return note("mountdevice", dir, device, o.ReadOnly)
		},
		UnmountDevice: func(dir string) error { return note("unmountdevice", dir) },
		Mount: func(dir string, o driver.Options) error {
			switch o.Values["do"] {
			case "fail":
				return fmt.Errorf("cannot log in with %s and %s", string(o.Secrets["password"]), "c2VjcmV0IHdvcmQ=")
			case "panic":
				panic("out of " + string(o.Secrets["password"]))
			}
			return note("mount", dir, o.PodName, o.PodNamespace, o.PodUID, o.ServiceAccount, *o.FSGroup, len(o.Secrets["password"]), o.Secrets)
		},
		Unmount: func(dir string) error { return note("unmount", dir) },
		ExpandVolume: func(o driver.Options, dir string, newSize, oldSize int64) (int64, error) {
			return newSize + 1, note("expandvolume", dir, newSize, oldSize)
		},
		ExpandFS: func(o driver.Options, device, dir string, newSize, oldSize int64) error {
			return note("expandfs", device, dir, newSize, oldSize)
		},
		ReportUsage: true, KeepLabel: true, KeepOwnership: true,
	}
}

// install installs the test executable as a driver.
func install(t *testing.T, name string) (*flexvolume.Driver, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "example.com~"+name, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return flexvolume.NewDriver("example.com/"+name, path, flexvolume.Settings{}), path
}

func TestSmallDriverMountsAndUnmounts(t *testing.T) {
	d, _ := install(t, "directory")
	ctx, base := context.Background(), t.TempDir()
	caps, err := d.Init(ctx)
	if want := (flexvolume.Capabilities{SELinuxRelabel: true, FSGroup: true}); err != nil || caps != want {
		t.Fatalf("capabilities %+v, %v", caps, err)
	}
	dir := filepath.Join(t.TempDir(), `pod "1" \ ü`)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	volume := flexvolume.Volume{Name: "pv1", Options: map[string]string{"base": base}}
	for range 2 {
		if err := d.Mount(ctx, dir, flexvolume.MountRequest{Volume: volume}); err != nil {
			t.Fatal(err)
		}
		if is, err := driver.IsMounted(dir); err != nil || !is {
			t.Fatalf("mounted %t, %v", is, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Unmount(ctx, dir); err != nil {
			t.Fatal(err)
		}
		if is, err := driver.IsMounted(dir); err != nil || is {
			t.Fatalf("mounted more than once: %t, %v", is, err)
		}
	}
	volume.ReadOnly = true
	if err := d.Mount(ctx, dir, flexvolume.MountRequest{Volume: volume}); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(content) != "kept" {
		t.Errorf("file %q, %v", content, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("write into a read-only volume: %v", err)
	}
	if err := d.Unmount(ctx, dir); err != nil {
		t.Error(err)
	}
	if err := d.Mount(ctx, dir, flexvolume.MountRequest{Volume: flexvolume.Volume{Name: "pv1"}}); err == nil || !strings.Contains(err.Error(), `option \"base\" is missing`) {
		t.Errorf("without its option: %v", err)
	}
	for _, op := range []flexvolume.Operation{flexvolume.OpAttach, flexvolume.OpGetVolumeName, flexvolume.OpExpandFS, "later"} {
		o := d.Try(ctx, flexvolume.Trial{Operation: op, Args: []string{"{}"}})
		if !errors.Is(o.Err, flexvolume.ErrNotSupported) || o.ExitCode != 1 {
			t.Errorf("%s: %+v", op, o)
		}
	}
}

func TestEveryOperationCallsItsFunction(t *testing.T) {
	d, path := install(t, "everything")
	ctx, volume := context.Background(), flexvolume.Volume{Name: "pv1", FSType: "xfs", ReadOnly: true}
	group := int64(42)
	mounting := flexvolume.MountRequest{
		Volume: volume, FSGroup: &group, Secrets: map[string][]byte{"password": []byte("secret word")},
		Pod: flexvolume.Pod{Name: "p", Namespace: "n", UID: "u", ServiceAccount: "s"},
	}
	caps, err := d.Init(ctx)
	if want := (flexvolume.Capabilities{Attach: true, SupportsMetrics: true, RequiresFSResize: true}); err != nil || caps != want {
		t.Errorf("capabilities %+v, %v", caps, err)
	}
	check := func(got any, err error, want any) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	}
	name, _, err := d.VolumeName(ctx, volume)
	check(name, err, "n~pv1")
	device, err := d.Attach(ctx, volume, "here")
	check(device, err, "/dev/a")
	device, err = d.WaitForAttach(ctx, "/dev/w", volume)
	check(device, err, "/dev/w")
	for node, want := range map[string]bool{"here": true, "there": false} {
		is, err := d.IsAttached(ctx, volume, node)
		check(is, err, want)
	}
	check(nil, d.MountDevice(ctx, "/d", "/dev/w", volume), nil)
	check(nil, d.Mount(ctx, "/m", mounting), nil)
	size, err := d.ExpandVolume(ctx, volume, "/d", 20, 10)
	check(size, err, int64(21))
	check(nil, d.ExpandFS(ctx, volume, "/dev/w", "/d", 20, 10), nil)
	check(nil, d.Unmount(ctx, "/m"), nil)
	check(nil, d.UnmountDevice(ctx, "/d"), nil)
	check(nil, d.Detach(ctx, "n~pv1", "here"), nil)
	notes, err := os.ReadFile(filepath.Join(filepath.Dir(path), "notes"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"init", "getvolumename pv1", "attach pv1 here", "waitforattach /dev/w xfs", "isattached there", "mountdevice /d /dev/w true",
		"mount /m p n u s 42 11 map[password:[secret]]", "expandvolume /d 20 10", "expandfs /dev/w /d 20 10", "unmount /m", "unmountdevice /d", "detach n~pv1 here",
	} {
		if !strings.Contains("\n"+string(notes), "\n"+line+"\n") {
			t.Errorf("no %q in\n%s", line, notes)
		}
	}
}

func TestOutputAndExitCodes(t *testing.T) {
	_, path := install(t, "everything")
	const secret = `{"do":"%s","kubernetes.io/secret/password":"c2VjcmV0IHdvcmQ="}`
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"success":               {[]string{"isattached", "{}", "there"}, 0, `{"status":"Success","attached":false}`},
		"failure":               {[]string{"mount", "/m", fmt.Sprintf(secret, "fail")}, 1, `{"status":"Failure","message":"cannot log in with [secret] and [secret]"}`},
		"panic":                 {[]string{"mount", "/m", fmt.Sprintf(secret, "panic")}, 1, `{"status":"Failure","message":"driver panicked: out of [secret]"}`},
		"unknown operation":     {[]string{"snapshot", "{}"}, 1, `{"status":"Not supported"}`},
		"too few arguments":     {[]string{"mount", "/m"}, 1, `{"status":"Failure","message":"operation takes 2 arguments, got 1"}`},
		"invalid JSON":          {[]string{"mount", "/m", "{"}, 1, `{"status":"Failure","message":"parse options: they are not a JSON object of strings"}`},
		"secret not encoded":    {[]string{"mount", "/m", `{"kubernetes.io/secret/k":"!"}`}, 1, `{"status":"Failure","message":"read secret \"k\": it is not base64"}`},
		"group is not a number": {[]string{"mount", "/m", `{"kubernetes.io/fsGroup":"x"}`}, 1, `{"status":"Failure","message":"parse kubernetes.io/fsGroup \"x\": it is not a number"}`},
		"size is not a number":  {[]string{"expandvolume", "{}", "/d", "x", "1"}, 1, `{"status":"Failure","message":"parse new size: strconv.ParseInt: parsing \"x\": invalid syntax"}`},
	} {
		command := exec.Command(path, test.args...)
		var stdout, stderr bytes.Buffer
		command.Stdout, command.Stderr = &stdout, &stderr
		err := command.Run()
		if diff := cmp.Diff(test.want+"\n", stdout.String()); diff != "" || command.ProcessState.ExitCode() != test.code {
			t.Errorf("%s: %v, output (-want +got):\n%s", name, err, diff)
		}
	}
	out, err := exec.Command(path).Output()
	if err == nil || !strings.Contains(string(out), "usage: ") || !json.Valid(out) {
		t.Errorf("without an operation: %v, %q", err, out)
	}
}

func TestSizesInKubernetesNotation(t *testing.T) {
	for text, want := range map[string]int64{
		"": 7, "0": 0, "123": 123, "2k": 2e3, "2Ki": 2 << 10, "3M": 3e6, "3Mi": 3 << 20, "1G": 1e9, "1Gi": 1 << 30, "1T": 1e12, "1Ti": 1 << 40,
		"2P": 2e15, "2Pi": 2 << 50, "1E": 1e18, "1Ei": 1 << 60,
	} {
		got, err := driver.Options{Values: map[string]string{"size": text}}.Size("size", 7)
		if err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"x", "-1", "1K", "1ki", "1i", "1MM", "1Mii", "1.5Gi", "8Ei", "Gi", "1 Gi"} {
		if got, err := (driver.Options{Values: map[string]string{"size": text}}).Size("size", 7); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
	o := driver.Options{Values: map[string]string{"a": "x"}}
	if o.Value("a", "y") != "x" || o.Value("b", "y") != "y" {
		t.Error("values or their defaults are wrong")
	}
}

func TestSecretsAreRedactedWhenPrinted(t *testing.T) {
	o := driver.Options{Secrets: map[string]driver.Secret{"k": driver.Secret("hidden word")}}
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		string(encoded), fmt.Sprint(o), fmt.Sprintf("%v %+v %#v", o, o, o), fmt.Sprintf("%s %q %x %d", o.Secrets["k"], o.Secrets["k"], o.Secrets["k"], o.Secrets["k"]),
	} {
		if strings.Contains(text, "hidden word") || strings.Contains(text, fmt.Sprintf("%x", "hidden word")) || strings.Contains(text, "104 105") {
			t.Errorf("the secret is in %q", text)
		}
	}
	if string(o.Secrets["k"]) != "hidden word" {
		t.Error("the value is not accessible")
	}
}

func TestUnmountRemovesStackedMounts(t *testing.T) {
	dir, source := t.TempDir(), t.TempDir()
	for range 3 {
		if err := syscall.Mount(source, dir, "", syscall.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for syscall.Unmount(dir, syscall.MNT_DETACH) == nil {
		}
	})
	if err := driver.Unmount(dir); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{dir: false, filepath.Join(dir, "absent"): false, "/proc": true} {
		if is, err := driver.IsMounted(path); err != nil || is != want {
			t.Errorf("%s: %t, %v", path, is, err)
		}
	}
	if _, err := driver.IsMounted("relative"); err == nil {
		t.Error("a relative path is accepted")
	}
	if err := driver.Bind(filepath.Join(source, "absent"), dir, false); err == nil {
		t.Error("a missing directory is bound")
	}
}

func TestPackageDependsOnStandardLibraryOnly(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(out)); len(got) != 1 || !strings.HasSuffix(got[0], "/driver") {
		t.Errorf("packages %q", got)
	}
}
