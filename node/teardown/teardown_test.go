package teardown

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/node/containerd"
	"github.com/slipway-platform/slipway/node/containerd/containerdtest"
	"github.com/slipway-platform/slipway/node/image"
)

// startProcess starts a program. The program is killed when the test ends, if it is still running.
func startProcess(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(name, args...)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return command
}

// ownCgroup returns a cgroup that no concurrent test run uses.
func ownCgroup(name string) string { return fmt.Sprintf("/slipway-test-%d-%s", os.Getpid(), name) }

// startPods starts containerd with two pods in the cgroup at the path root. Each pod has a
// container whose process ignores SIGTERM.
func startPods(t *testing.T, root string) (r containerd.Runtime, daemon *containerdtest.Daemon) {
	t.Helper()
	r, programs := containerdtest.New(t)
	daemon = containerdtest.Start(t, r)
	snapshotter, err := r.Snapshotter()
	if err != nil {
		t.Fatal(err)
	}
	store := image.Store{Socket: r.Socket, Snapshotter: snapshotter}
	loader := image.Loader{Store: store, Pause: programs.Pause, Busybox: "/bin/busybox", Executable: programs.Pause}
	component := componenttest.Run(t, loader.Run)
	connection, err := grpc.NewClient("unix://"+r.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	images := criapi.NewImageServiceClient(connection)
	eventually.True(t, "the image", func() bool {
		status, err := images.ImageStatus(t.Context(), &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: image.ToolsName}})
		return err == nil && status.GetImage() != nil
	})
	component.Stop()
	for _, name := range []string{"one", "two"} {
		startPod(t, criapi.NewRuntimeServiceClient(connection), name, root)
	}
	return r, daemon
}

func startPod(t *testing.T, runtime criapi.RuntimeServiceClient, name, root string) {
	t.Helper()
	config := &criapi.PodSandboxConfig{
		Metadata:     &criapi.PodSandboxMetadata{Name: name, Namespace: "test", Uid: name},
		LogDirectory: t.TempDir(),
		Linux: &criapi.LinuxPodSandboxConfig{
			CgroupParent: root + "/pods/" + name,
			SecurityContext: &criapi.LinuxSandboxSecurityContext{
				NamespaceOptions: &criapi.NamespaceOption{Network: criapi.NamespaceMode_NODE},
			},
		},
	}
	sandbox, err := runtime.RunPodSandbox(t.Context(), &criapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	container, err := runtime.CreateContainer(t.Context(), &criapi.CreateContainerRequest{
		PodSandboxId:  sandbox.GetPodSandboxId(),
		SandboxConfig: config,
		Config: &criapi.ContainerConfig{
			Metadata: &criapi.ContainerMetadata{Name: "main"},
			Image:    &criapi.ImageSpec{Image: image.ToolsName},
			Command:  []string{"sh", "-c", "trap '' TERM; while true; do sleep 1; done"},
			LogPath:  "main.log",
			Linux:    &criapi.LinuxContainerConfig{},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.StartContainer(t.Context(), &criapi.StartContainerRequest{ContainerId: container.GetContainerId()}); err != nil {
		t.Fatal(err)
	}
}

// dataDir returns the directory that contains all of r's data.
func dataDir(r containerd.Runtime) string { return filepath.Dir(r.Root) }

// assertNothing checks that no processes, mounts or cgroups of r remain, and no processes in the
// cgroup at the path root.
func assertNothing(t *testing.T, r containerd.Runtime, root string) {
	t.Helper()
	for name, find := range map[string]func() ([]Process, error){
		"programs":   func() ([]Process, error) { return Running(dataDir(r)) },
		"containers": func() ([]Process, error) { return InCgroup(root) },
	} {
		if processes, err := find(); err != nil || len(processes) > 0 {
			t.Errorf("%s: %v, %v", name, processes, err)
		}
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dataDir(r)))
	if err != nil || len(mounts) > 0 {
		t.Errorf("mounts: %v, %v", mounts, err)
	}
	dirs, err := cgroupDirs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("cgroup %q remains: %v", dir, err)
		}
	}
}

func TestTeardownRemovesEverything(t *testing.T) {
	root := ownCgroup("down")
	r, daemon := startPods(t, root)
	for range 2 {
		if err := Pods(t.Context(), r.Socket, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	daemon.Stop(t)
	for range 2 {
		if err := errors.Join(Processes(t.Context(), dataDir(r), root), unmountIdle(r.State, r.Root), Cgroups(root)); err != nil {
			t.Fatal(err)
		}
	}
	assertNothing(t, r, root)
}

func TestTeardownWithoutContainerd(t *testing.T) {
	root := ownCgroup("gone")
	r, daemon := startPods(t, root)
	daemon.Stop(t)
	if processes, err := InCgroup(root); err != nil || len(processes) < 4 {
		t.Fatalf("the pods ended with containerd: %v, %v", processes, err)
	}
	if err := errors.Join(
		Pods(t.Context(), r.Socket, time.Second),
		Processes(t.Context(), dataDir(r), root),
		unmountIdle(r.State, r.Root),
		Cgroups(root),
	); err != nil {
		t.Fatal(err)
	}
	assertNothing(t, r, root)
}

func TestEndKillsProcessesThatIgnoreSIGTERM(t *testing.T) {
	dir := t.TempDir()
	shell := filepath.Join(dir, "sh")
	data, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(shell, data, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(shell, "-c", "trap '' TERM; echo ready; while true; do sleep 0.1; done")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	// This also works if the program's file was deleted, as after an upgrade.
	if err := os.Remove(shell); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := Processes(ctx, dir, ""); err != nil {
		t.Error(err)
	}
	_ = command.Wait()
	if signal := command.ProcessState.Sys().(interface{ Signal() unix.Signal }).Signal(); signal != unix.SIGKILL {
		t.Errorf("the process ended with signal %v", signal)
	}
}

func TestRunningExcludesAncestors(t *testing.T) {
	list, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if p.PID == os.Getpid() || p.PID == os.Getppid() || p.PID == 1 {
			t.Errorf("%+v is listed", p)
		}
	}
}

func TestMountsUnmountsLatestFirst(t *testing.T) {
	dir := t.TempDir()
	point := filepath.Join(dir, "with a blank", "mount")
	mount(t, "tmpfs", point)
	mount(t, "tmpfs", point) // covers the first mount
	mount(t, "tmpfs", filepath.Join(point, "below"))
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	mount(t, "tmpfs", filepath.Join(dir, "other"))
	for range 2 {
		if err := unmountIdle(dir, filepath.Join(dir, "missing")); err != nil {
			t.Fatal(err)
		}
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil || len(mounts) > 0 {
		t.Errorf("remaining: %v, %v", mounts, err)
	}
}

// unmountIdle unmounts all mounts below directories. It returns an error if a mount was in use.
func unmountIdle(dirs ...string) error {
	detached, err := Mounts(dirs...)
	if len(detached) > 0 {
		return errors.Join(err, fmt.Errorf("in use: %q", detached))
	}
	return err
}

func mount(t *testing.T, source, point string) {
	t.Helper()
	if err := os.MkdirAll(point, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(source, point, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(point, unix.MNT_DETACH) })
}

func TestMountsKeepsFileSystemAtDirectory(t *testing.T) {
	dir := t.TempDir()
	mount(t, "tmpfs", dir)
	if err := unmountIdle(dir); err != nil {
		t.Fatal(err)
	}
	if mounted, err := mountinfo.Mounted(dir); err != nil || !mounted {
		t.Errorf("mounted: %v, %v", mounted, err)
	}
}

func TestMountsDetachesBusyMountAndNamesUser(t *testing.T) {
	dir := t.TempDir()
	point := filepath.Join(dir, "busy")
	mount(t, "tmpfs", point)
	user := exec.Command("sleep", "60")
	user.Dir = point
	if err := user.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = user.Process.Kill()
		_ = user.Wait()
	}()
	detached, err := Mounts(dir)
	if err != nil || len(detached) != 1 {
		t.Fatalf("detached %q, error %v", detached, err)
	}
	for _, text := range []string{point, "detached lazily", fmt.Sprintf("%d (sleep)", user.Process.Pid), "end it"} {
		if !strings.Contains(detached[0], text) {
			t.Errorf("sentence %q does not contain %q", detached[0], text)
		}
	}
	if mounted, err := mountinfo.Mounted(point); err != nil || mounted {
		t.Errorf("mounted: %v, %v", mounted, err)
	}
}

func TestTeardownRejectsRoots(t *testing.T) {
	for name, err := range map[string]error{
		"mounts": unmountIdle("/"), "cgroups": Cgroups("/"), "no cgroup": Cgroups(""), "dots": Cgroups("/slipway/.."),
		"processes": Processes(t.Context(), "/", ""),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCgroupsNamesRemainingProcesses(t *testing.T) {
	root := ownCgroup("occupied")
	dirs, err := cgroupDirs(root)
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%v, %v", dirs, err)
	}
	process := startProcess(t, "sleep", "60")
	child := filepath.Join(dirs[0], "child")
	if err := os.MkdirAll(child, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(child, "cgroup.procs"), fmt.Append(nil, process.Process.Pid), 0o644); err != nil {
		t.Fatal(err)
	}
	err = Cgroups(root)
	if want := fmt.Sprintf("%d (sleep)", process.Process.Pid); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), child) {
		t.Errorf("error %v, want %s in it", err, want)
	}
	if err := Processes(t.Context(), "", root); err != nil {
		t.Error(err)
	}
	if err := Cgroups(root); err != nil {
		t.Error(err)
	}
}
