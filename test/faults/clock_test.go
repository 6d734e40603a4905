package faults

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

// clockShift is the difference between a host's clock and the correct time during a fault.
const clockShift = 10 * time.Minute

// stopLimit is the timeout for all threads of a process to stop on a busy machine.
const stopLimit = 30 * time.Second

// shiftClock changes the clock of all processes on a host until restore is called. The hosts share
// the kernel's clock, but programs read it with a function that the kernel maps into each process.
// Therefore, shiftClock replaces this function's code in the host's processes. Processes that start
// later have the correct time.
func shiftClock(t *testing.T, host *kit.Cluster, shift time.Duration) (restore func()) {
	t.Helper()
	processes, err := host.Processes()
	must(t, err)
	code := shiftedClock(t, shift)
	var undo []func()
	for _, process := range processes {
		restoreProcess, err := replaceClock(process.PID, code)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the process has exited
		}
		if err != nil {
			t.Fatalf("change clock of process %d: %v", process.PID, err)
		}
		undo = append(undo, restoreProcess)
	}
	checkClock(t, host, shift)
	return func() {
		for _, restoreProcess := range undo {
			restoreProcess()
		}
	}
}

// shiftedClock returns machine code for clock_gettime(2) that adds shift to CLOCK_REALTIME.
func shiftedClock(t *testing.T, shift time.Duration) []byte {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Fatalf("there is no machine code for %s", runtime.GOARCH)
	}
	code := []byte{
		0xb8, 0xe4, 0, 0, 0, // mov $SYS_clock_gettime, %eax
		0x0f, 0x05, // syscall
		0x85, 0xff, // test %edi, %edi: CLOCK_REALTIME is 0
		0x75, 0x07, // jne to ret
		0x48, 0x81, 0x06, // addq $shift, (%rsi): the seconds
	}
	code = binary.LittleEndian.AppendUint32(code, uint32(int32(shift/time.Second)))
	return append(code, 0xc3) // ret
}

// replaceClock replaces the beginning of clock_gettime in a process. undo restores it.
func replaceClock(pid int, code []byte) (undo func(), err error) {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	address, err := clockAddress(pid, memory)
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	former := make([]byte, len(code))
	if _, err = memory.ReadAt(former, address); err == nil {
		err = writeStopped(pid, memory, address, code)
	}
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	return func() {
		_ = writeStopped(pid, memory, address, former) // the process might have exited
		_ = memory.Close()
	}, nil
}

// clockAddress returns the address of clock_gettime in a process.
func clockAddress(pid int, memory *os.File) (int64, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.Contains(line, "[vdso]") {
			continue
		}
		var start, end int64
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil {
			return 0, err
		}
		image := make([]byte, end-start)
		if _, err := memory.ReadAt(image, start); err != nil {
			return 0, err
		}
		file, err := elf.NewFile(bytes.NewReader(image))
		if err != nil {
			return 0, err
		}
		symbols, err := file.DynamicSymbols()
		i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "__vdso_clock_gettime" })
		if i < 0 {
			return 0, errors.Join(err, errors.New("the kernel does not provide __vdso_clock_gettime"))
		}
		return start + int64(symbols[i].Value), nil
	}
	return 0, fs.ErrNotExist // the process has exited
}

// errRunning means that a thread has not stopped yet.
var errRunning = errors.New("the process does not stop")

// writeStopped stops a process to change code in it, while none of its threads executes that code.
func writeStopped(pid int, memory *os.File, address int64, code []byte) error {
	attempts := time.NewTicker(time.Millisecond)
	defer attempts.Stop()
	for range 100 {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		safe, err := isOutside(pid, address, len(code))
		for deadline := time.Now().Add(stopLimit); errors.Is(err, errRunning) && time.Now().Before(deadline); {
			<-attempts.C
			safe, err = isOutside(pid, address, len(code))
		}
		if err == nil && safe {
			_, err = memory.WriteAt(code, address)
		}
		if err := errors.Join(err, syscall.Kill(pid, syscall.SIGCONT)); err != nil || safe {
			return err
		}
		<-attempts.C
	}
	return errors.New("the process always reads the clock")
}

// isOutside reports whether all threads of a process have stopped outside the code. It returns
// errRunning if a thread has not stopped yet.
func isOutside(pid int, address int64, size int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	if err != nil {
		return false, err
	}
	outside := true
	for _, thread := range threads {
		state, err := os.ReadFile(thread)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return false, err
		}
		fields := strings.Fields(string(state)) // the last field is the program counter
		if len(fields) == 0 || fields[0] == "running" {
			return false, errRunning
		}
		counter, err := strconv.ParseInt(strings.TrimPrefix(fields[len(fields)-1], "0x"), 16, 64)
		if err != nil {
			return false, err
		}
		outside = outside && (counter < address || counter >= address+int64(size))
	}
	return outside, nil
}

// checkClock fails the test unless the API server on the host uses the shifted clock.
func checkClock(t *testing.T, host *kit.Cluster, shift time.Duration) {
	t.Helper()
	transport := &http.Transport{DialContext: host.Dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Head(host.APIURL() + "/readyz")
	if err != nil {
		t.Errorf("read clock of the API server: %v", err)
		return
	}
	response.Body.Close()
	now, err := http.ParseTime(response.Header.Get("Date"))
	if difference := time.Until(now) - shift; err != nil || difference.Abs() > clockShift/2 {
		t.Errorf("the API server's clock shows %q, %v; want a difference of %v", response.Header.Get("Date"), err, shift)
	}
}

// printClock is the environment variable that makes the test program print the time.
const printClock = "PRINT_CLOCK"

func TestClockOfProcessDiffers(t *testing.T) {
	if os.Getenv(printClock) != "" {
		for range time.Tick(time.Millisecond) { // until the test kills this process
			fmt.Println(time.Now().Unix())
		}
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestClockOfProcessDiffers$")
	command.Env = append(os.Environ(), printClock+"=true")
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	lines := bufio.NewScanner(output)
	wait := func(shift time.Duration) {
		t.Helper()
		for lines.Scan() {
			seconds, err := strconv.ParseInt(lines.Text(), 10, 64)
			if difference := time.Until(time.Unix(seconds, 0)) - shift; err == nil && difference.Abs() < clockShift/2 {
				return
			}
		}
		t.Fatalf("the process has ended without a time that differs by %s: %v", shift, lines.Err())
	}
	wait(0)
	for _, shift := range []time.Duration{clockShift, -clockShift} {
		undo, err := replaceClock(command.Process.Pid, shiftedClock(t, shift))
		must(t, err)
		wait(shift)
		undo()
		wait(0)
	}
	must(t, command.Process.Kill())
	_ = command.Wait() // Wait returns an error because the process was killed
}
