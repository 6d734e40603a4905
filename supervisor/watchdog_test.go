package supervisor

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// watchdogLimit is the time without a notification after which systemd restarts the service.
const watchdogLimit = 200 * time.Millisecond

// listenAsSystemd sets the environment variables that systemd sets for a service with a watchdog,
// and returns the notification socket.
func listenAsSystemd(t *testing.T) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", strconv.FormatInt(watchdogLimit.Microseconds(), 10))
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	return socket
}

// notified reports whether a watchdog notification arrives on the socket within the given time.
func notified(t *testing.T, socket *net.UnixConn, within time.Duration) bool {
	t.Helper()
	if err := socket.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 4096)
	for {
		size, err := socket.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(buffer[:size]) == "WATCHDOG=1" {
			return true
		}
	}
}

func TestWatchdogIsNotifiedUntilSupervisorHangs(t *testing.T) {
	socket := listenAsSystemd(t)
	s := New("v1", t.TempDir(), "", nil)
	stop := s.feedWatchdog()
	for range 3 {
		if !notified(t, socket, time.Minute) {
			t.Fatal("no notification of a supervisor that works")
		}
	}
	s.mu.Lock()
	// Up to two notifications can be in flight, so discard two before the check.
	for range 2 {
		notified(t, socket, watchdogLimit)
	}
	if notified(t, socket, 5*watchdogLimit) {
		t.Error("a supervisor that hangs notifies the watchdog")
	}
	s.mu.Unlock()
	if !notified(t, socket, time.Minute) {
		t.Error("no notification after the supervisor continues")
	}
	stop()
	for notified(t, socket, watchdogLimit/10) {
	}
	if notified(t, socket, 5*watchdogLimit) {
		t.Error("a notification after the stop")
	}
}

func TestWatchdogNeedsSettingOfUnit(t *testing.T) {
	socket := listenAsSystemd(t)
	t.Setenv("WATCHDOG_PID", "1") // the PID of another process
	stop := New("v1", t.TempDir(), "", nil).feedWatchdog()
	defer stop()
	if notified(t, socket, 5*watchdogLimit) {
		t.Error("the watchdog of another process is notified")
	}
}
