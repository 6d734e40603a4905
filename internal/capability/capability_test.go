package capability

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func unwanted() []uintptr { return []uintptr{unix.CAP_SYS_BOOT, unix.CAP_SYS_TIME, unix.CAP_BPF} }

// TestProgramsDoNotRegainDroppedCapabilities runs the test binary in a new process, because a
// process cannot regain dropped capabilities.
func TestProgramsDoNotRegainDroppedCapabilities(t *testing.T) {
	const variable = "SLIPWAY_TEST_DROP"
	if os.Getenv(variable) != "" {
		if err := Drop(unwanted()...); err != nil {
			t.Fatal(err)
		}
		output, err := exec.Command("cat", "/proc/self/status").Output()
		if err != nil {
			t.Fatal(err)
		}
		expectDropped(t, "program that it starts", string(output))
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			status, err := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
			if err != nil {
				t.Fatal(err)
			}
			expectDropped(t, "thread "+task.Name(), string(status))
		}
		return
	}
	command := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	command.Env = append(os.Environ(), variable+"=1")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func expectDropped(t *testing.T, process, status string) {
	t.Helper()
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		if name != "CapEff" && name != "CapPrm" && name != "CapBnd" {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, capability := range unwanted() {
			if set&(1<<capability) != 0 {
				t.Errorf("%s of the %s has capability %d", name, process, capability)
			}
		}
		if set&(1<<unix.CAP_SYS_ADMIN) == 0 {
			t.Errorf("%s of the %s has lost CAP_SYS_ADMIN", name, process)
		}
	}
}
