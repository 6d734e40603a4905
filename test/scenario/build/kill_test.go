package build

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// waitLog waits until a build's log contains the given text.
func (p *project) waitLog(build, want string) {
	p.t.Helper()
	p.WaitFor(fmt.Sprintf("the log of build %s to contain %q", build, want), func(context.Context) error {
		log, err := p.TryOC("logs", "build/"+build)
		if err == nil && !strings.Contains(log, want) {
			err = fmt.Errorf("got %q", log)
		}
		return err
	})
}

// builder returns the PID of the builder process in a build pod.
func (p *project) builder() int {
	p.t.Helper()
	processes, err := p.Processes()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, process := range processes {
		if process.Program() == "slipway-builder" {
			return process.PID
		}
	}
	p.t.Fatalf("no builder is among %v", processes)
	return 0
}

// capable lists the threads in a process that have the given capability or can pass it to a child.
func capable(t *testing.T, pid int, capability uint) (threads []string) {
	t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(paths) == 0 {
		t.Fatalf("process %d has no threads: %v", pid, err)
	}
	for _, thread := range paths {
		text, err := os.ReadFile(thread)
		if err != nil { // the thread has exited
			continue
		}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			if set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64); strings.HasPrefix(name, "Cap") && (err != nil || set&(1<<capability) != 0) {
				threads = append(threads, thread+": "+line)
			}
		}
	}
	return threads
}

// processesOf returns a pod's mounts and cgroup directories that exist on the host.
func processesOf(t *testing.T, uid string) (processes []string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, uid) {
			processes = append(processes, line)
		}
	}
	// Ignore errors, because cgroups are created and removed during the walk.
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.Contains(path, uid) {
			processes = append(processes, path)
		}
		return nil
	})
	return processes
}

func TestRemainsOfKilledBuilderAreRemoved(t *testing.T) {
	p := newProject(t)
	const netAdmin = 12
	p.dockerConfig("app", fmt.Sprintf("dockerfile: %q", "FROM "+p.base()+"\n"+shell+"RUN echo the step runs; exec /bin/busybox sleep 100000\n"), "app:latest")
	p.OC("start-build", "app")
	p.waitLog("app-1", "the step runs")
	builder, pod := p.builder(), p.Pod("app-1-build")
	if threads := capable(t, builder, netAdmin); len(threads) > 0 {
		t.Errorf("the builder can still change its network: %q", threads)
	}
	if err := syscall.Kill(builder, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.waitOutput("build/app-1", "{.status.phase} {.status.reason} {.status.message}",
		"Failed GenericBuildFailed The build was killed by signal 9 (exit code 137). Start it again.")
	p.WaitFor("mounts and cgroups of the pod to be removed", func(context.Context) error {
		if processes := processesOf(t, string(pod.UID)); len(processes) > 0 {
			return fmt.Errorf("there are %q", processes)
		}
		return nil
	})

	// The next build must succeed even if the node process is killed while the build runs.
	p.dockerConfig("app", fmt.Sprintf("dockerfile: %q", "FROM "+p.base()+"\n"+shell+"RUN echo the step runs; /bin/busybox sleep 4; echo the step goes on\n"), "app:latest")
	p.OC("start-build", "app")
	p.waitLog("app-2", "the step runs")
	p.Kill("node")
	p.waitPhase("app-2", "Complete")
	p.waitLog("app-2", "the step goes on")
}

func TestBuildOverLimitFailsAlone(t *testing.T) {
	p := newProject(t)
	from := "FROM " + p.base() + "\n" + shell
	for name, tt := range map[string]struct{ limit, step string }{
		"disk":   {"ephemeral-storage: 32Mi", "/bin/busybox dd if=/dev/zero of=/zeros bs=1M count=96"},
		"memory": {"memory: 192Mi", "/bin/busybox tail /dev/zero"},
	} {
		p.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: %s}, spec: {resources: {limits: {%s}},
			strategy: {dockerStrategy: {}}, source: {dockerfile: %q}, output: {to: {kind: ImageStreamTag, name: "app:latest"}}}}`, name, tt.limit, from+"RUN "+tt.step+"\n"))
		p.OC("start-build", name)
	}
	p.waitOutput("build/memory-1", "{.status.phase} {.status.reason}", "Failed OutOfMemoryKilled")
	p.waitOutput("build/disk-1", "{.status.phase} {.status.reason}", "Failed DockerBuildFailed")
	p.waitLog("disk-1", "No space left on device")
}
