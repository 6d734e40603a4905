package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
)

func TestProgramName(t *testing.T) {
	tests := []struct{ line, want string }{
		{"/data/bin/etcd\x00--name=a\x00", "etcd"},
		{"/tmp/x/slipway\x00control-plane\x00--data-dir\x00/x\x00", "slipway control-plane"},
		{"/tmp/x/slipway\x00", "slipway"},
		{"/pause\x00", "pause"},
	}
	for _, test := range tests {
		if got := programName([]byte(test.line)); got != test.want {
			t.Errorf("%q: got %q, want %q", test.line, got, test.want)
		}
	}
}

// sleeper is a shell script that keeps running in the background.
const sleeper = "sleep 300 & sleep 301 & wait"

func TestHostListsAndRemovesItsProcesses(t *testing.T) {
	h, err := New(t.TempDir()+"/side", fmt.Sprintf("/slipway-bench-test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("sh", "-c", sleeper)
	if err := h.Start(command); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	err = wait.PollUntilContextCancel(t.Context(), time.Millisecond, true, func(context.Context) (bool, error) {
		// A child process runs sh until it executes sleep.
		processes, err := h.Processes()
		sleeping := 0
		for _, p := range processes {
			if p.Name == "sleep" {
				sleeping++
			}
		}
		return sleeping == 2, err
	})
	if err != nil {
		t.Fatalf("wait for two sleepers in the namespace: %v", err)
	}
	all, err := h.Usage()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, u := range Merge(all) {
		names = append(names, u.Name)
		if u.PSS <= 0 || u.Anonymous <= 0 {
			t.Errorf("%s uses %d and %d bytes", u.Name, u.PSS, u.Anonymous)
		}
	}
	if diff := cmp.Diff([]string{"sh", "sleep"}, names); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}

	err = h.Remove(t.Context())
	if err == nil || strings.Count(err.Error(), "(sleep)") != 2 {
		t.Errorf("got error %v, want an error that names the remains", err)
	}
	<-done // done is closed when the process has been killed.
	if _, err := os.Stat(h.Dir); !os.IsNotExist(err) {
		t.Errorf("directory: got %v, want a missing directory", err)
	}
}

func TestWorkOnOtherThreadsKeepsNamespaceOfProcess(t *testing.T) {
	before, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(t.TempDir()+"/side", fmt.Sprintf("/slipway-bench-test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		err := h.Do(func() error {
			if inside, err := os.Readlink("/proc/thread-self/ns/net"); err != nil || inside == before {
				return fmt.Errorf("thread is in namespace %s, %w", inside, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if processes, err := h.Processes(); err != nil || len(processes) > 0 {
		t.Errorf("got processes %v, %v; want none: this process is in another namespace", processes, err)
	}
	if after, err := os.Readlink("/proc/self/ns/net"); err != nil || after != before {
		t.Errorf("the process is in namespace %s, %v; want %s", after, err, before)
	}
	if err := h.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}
