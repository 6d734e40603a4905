package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/supervisor"
)

// passTo is an environment variable that contains a directory. If it is set, the test binary locks
// the directory and passes a plan to itself.
const passTo = "PLAN_TEST_PASS_TO"

func TestMain(m *testing.M) {
	dir := os.Getenv(passTo)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := pass(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pass is the main function of both programs: without arguments, it passes the plan, and with an
// argument, it receives the plan.
func pass(dir string) error {
	if len(os.Args) == 1 {
		lock, err := supervisor.Lock(dir, dir)
		if err != nil {
			return err
		}
		return example().Exec(os.Args[0], filepath.Join(dir, "plan.json"), lock)
	}
	p, lock, err := Read(os.Args[1])
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := supervisor.Lock(dir, dir); err == nil {
		return errors.New("the lock is not passed")
	}
	flags, err := unix.FcntlInt(lock.Fd(), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		return fmt.Errorf("programs inherit the lock: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(p)
}

func example() Plan {
	return Plan{
		Version: "v1", DataDir: "/data", Socket: "/run/s.sock", Log: "/log/slipway.log",
		Processes: []supervisor.Process{{
			Name: "node", Command: []string{"/bin/slipway", "node"}, StopTimeout: 5 * time.Second,
			Components: []supervisor.ComponentStatus{{Name: "kubelet", After: []string{"runtime"}}},
		}},
		Address: netip.MustParseAddr("192.0.2.1"), SecondAddress: netip.MustParseAddr("2001:db8::1"), DualStack: true, IgnoredDevices: []string{"slipway0"},
		Restart: []string{"/bin/slipway", "run"},
	}
}

func TestPlanAndLockArePassedToNextProgram(t *testing.T) {
	dir := t.TempDir()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), passTo+"="+dir)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got Plan
	if err := json.Unmarshal(output, &got); err != nil {
		t.Fatal(err)
	}
	options := []cmp.Option{
		cmpopts.IgnoreFields(Plan{}, "Lock"), cmpopts.IgnoreUnexported(supervisor.ComponentStatus{}), cmpopts.EquateComparable(netip.Addr{}),
	}
	if diff := cmp.Diff(example(), got, options...); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if lock, err := supervisor.Lock(dir, dir); err != nil {
		t.Errorf("the lock remains after the program has ended: %v", err)
	} else {
		lock.Close()
	}
}

func TestErrorsContainPathOfFile(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{broken, broken + ".missing"} {
		if _, _, err := Read(file); err == nil || !errors.As(err, new(*json.SyntaxError)) && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: error %v", file, err)
		}
	}
}
