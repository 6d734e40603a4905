package flexvolume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestTrialReportsCall(t *testing.T) {
	driver := newTestDriver(t, `echo warning >&2; echo '{"status":"Success","message":"m","device":"/dev/x","volumeName":"v","attached":true,"volumeNewSize":7}'`)
	o := driver.Try(context.Background(), Trial{Operation: OpWaitForAttach, Args: []string{"a", "{}"}})
	if o.Err != nil || o.ExitCode != 0 || o.Status != "Success" || o.Message != "m" || o.Device != "/dev/x" || o.VolumeName != "v" || !o.Attached ||
		o.VolumeNewSize != 7 || o.Stderr != "warning\n" || !strings.HasPrefix(o.Stdout, "{") || o.Duration <= 0 || o.Killed || o.Leaked || len(o.Args) != 2 {
		t.Errorf("%+v", o)
	}
	failing := newTestDriver(t, `echo '{"status":"Failure","message":"no"}'; exit 3`)
	o = failing.Try(context.Background(), Trial{Operation: OpInit})
	if KindOf(o.Err) != KindFailure || o.ExitCode != 3 || o.Status != "Failure" || o.Message != "no" {
		t.Errorf("%+v", o)
	}
}

func TestTrialRedactsSecrets(t *testing.T) {
	driver := newTestDriver(t, `echo "$2" >&2; echo '{"status":"Success","message":"pa55word"}'`)
	input, err := MountRequest{Volume: Volume{Name: "v"}, Secrets: map[string][]byte{"k": []byte("pa55word")}}.Input()
	if err != nil {
		t.Fatal(err)
	}
	o := driver.Try(context.Background(), Trial{Operation: OpMount, Args: []string{input, input}})
	for _, text := range append(o.Args, o.Stdout, o.Stderr, o.Message) {
		if strings.Contains(text, "pa55word") || strings.Contains(text, "cGE1NXdvcmQ") {
			t.Errorf("the secret is in %q", text)
		}
	}
	if !o.Leaked || o.Err != nil {
		t.Errorf("leaked %t, error %v", o.Leaked, o.Err)
	}
}

func TestTrialCallsUnsupportedOperations(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "flag")
	driver := newTestDriver(t, `if [ -e `+flag+` ]; then echo '{"status":"Success"}'; else echo '{"status":"Not supported"}'; exit 1; fi`)
	if o := driver.Try(context.Background(), Trial{Operation: OpUnmount, Args: []string{"/x"}}); !errors.Is(o.Err, ErrNotSupported) {
		t.Fatal(o.Err)
	}
	if err := driver.Unmount(context.Background(), "/x"); !errors.Is(err, ErrNotSupported) || !driver.Unsupported(OpUnmount) {
		t.Error(err)
	}
	write(t, flag, "")
	if o := driver.Try(context.Background(), Trial{Operation: OpUnmount, Args: []string{"/x"}}); o.Err != nil {
		t.Error(o.Err)
	}
}

func TestKilledTrialLeavesNoProcess(t *testing.T) {
	marks := filepath.Join(t.TempDir(), "marks")
	driver := newTestDriver(t, `(trap '' TERM; while :; do echo $TEST_MARK $0 >>`+marks+`; sleep 0.01; done) & wait`)
	o := driver.Try(context.Background(), Trial{Operation: OpMount, KillAfter: 300 * time.Millisecond, Env: "TEST_MARK=here"})
	if !o.Killed || o.ExitCode != -1 || o.Err == nil {
		t.Errorf("%+v", o)
	}
	resp := read(t, marks)
	if !strings.HasPrefix(resp, "here "+driver.path+"\n") {
		t.Errorf("the driver saw %q", resp)
	}
	size := func() int64 { info, err := os.Stat(marks); _ = err; return info.Size() }
	last := size()
	eventually.True(t, "the child stops writing", func() bool { now := size(); same := now == last; last = now; return same })
	o = newTestDriver(t, `echo '{"status":"Success"}'`).Try(context.Background(), Trial{Operation: OpInit, KillAfter: time.Hour})
	if o.Killed || o.Err != nil {
		t.Errorf("%+v", o)
	}
}
