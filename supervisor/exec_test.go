package supervisor

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/usermode"
)

// role is an environment variable that selects the role of the test binary: a supervisor, its
// process, or the systemd service. directory is the environment variable for the directory with the
// service's files.
const (
	role      = "SUPERVISOR_TEST_ROLE"
	directory = "SUPERVISOR_TEST_DIRECTORY"
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(role) {
	case "":
		usermode.Main(m)
	case "service":
		err = runService(os.Getenv(directory))
	case "supervisor":
		err = superviseOne()
	case "process":
		done := make(chan error)
		go onSecondThread(func() { done <- Exec("/bin/sh", []string{"sh", "-c", "echo $$; exec sleep 1000"}, os.Environ()) })
		err = <-done
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// onSecondThread calls do on a thread other than the process's first thread.
func onSecondThread(do func()) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		go onSecondThread(do)
		select {}
	}
	do()
}

// superviseOne starts the test binary as a supervised process and waits until it exits.
func superviseOne() error {
	runtime.LockOSThread() // the parent-death signal is tied to the thread that starts the process
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), role+"=process")
	command.Stdout = os.Stdout
	command.SysProcAttr = processAttributes()
	if err := command.Start(); err != nil {
		return err
	}
	return command.Wait()
}

func TestProcessThatExecutesEndsWithSupervisor(t *testing.T) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), role+"=supervisor")
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // the signal makes the process exit
	// The process has already exited unless the test fails.
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	eventually.True(t, "the process ends with its supervisor", func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(state), ") Z ")
	})
}
