package thread

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestChangesStayOnThread(t *testing.T) {
	network := func() string {
		name, err := os.Readlink("/proc/thread-self/ns/net")
		if err != nil {
			t.Error(err)
		}
		return name
	}
	before := network()
	var group sync.WaitGroup
	for range 50 { // enough runs to use the main thread at least once
		group.Go(func() {
			err := Run(func() error {
				if unix.Gettid() == unix.Getpid() {
					t.Error("it runs on the first thread of the process")
				}
				if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
					return err
				}
				inside := network()
				if inside == before {
					t.Error("the namespace has not changed")
				}
				child, err := exec.Command("readlink", "/proc/self/ns/net").Output()
				if string(child) != inside+"\n" {
					t.Errorf("a process is in %q, its thread in %q", child, inside)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for range 50 {
		group.Go(func() {
			if after := network(); after != before {
				t.Errorf("a goroutine is in %s, not in %s", after, before)
			}
		})
	}
	group.Wait()
	if process, err := os.Readlink("/proc/self/ns/net"); err != nil || process != before {
		t.Errorf("the process is in %s, %v, not in %s", process, err, before)
	}
}

func TestErrorIsReturned(t *testing.T) {
	want := errors.New("no")
	if err := Run(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("error is %v", err)
	}
}
