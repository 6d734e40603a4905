package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/slipway-platform/slipway/internal/payload"
	"github.com/slipway-platform/slipway/node/containerd/containerdtest"
	"github.com/slipway-platform/slipway/node/teardown"
)

// node is a real containerd and its clients.
type node struct {
	store    Store
	programs payload.Programs
	runtime  criapi.RuntimeServiceClient
	images   criapi.ImageServiceClient
	daemon   *containerdtest.Daemon
	// root is containerd's directory.
	root string
}

func startNode(t *testing.T) *node {
	t.Helper()
	return startNodeOn(t, func(string) {})
}

// startNodeOn starts a node after prepare has prepared containerd's directory.
func startNodeOn(t *testing.T, prepare func(root string)) *node {
	t.Helper()
	r, programs := containerdtest.New(t)
	prepare(r.Root)
	daemon := containerdtest.Start(t, r)
	snapshotter, err := r.Snapshotter()
	if err != nil {
		t.Fatal(err)
	}
	connection, err := grpc.NewClient("unix://"+r.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return &node{
		store:    Store{Socket: r.Socket, Snapshotter: snapshotter},
		programs: programs,
		runtime:  criapi.NewRuntimeServiceClient(connection),
		images:   criapi.NewImageServiceClient(connection),
		daemon:   daemon,
		root:     r.Root,
	}
}

// image returns an image as the kubelet sees it, or nil.
func (n *node) image(t *testing.T, name string) *criapi.Image {
	t.Helper()
	status, err := n.images.ImageStatus(t.Context(), &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: name}}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return status.GetImage()
}

// run runs a container from the image in a pod on the host network, and returns the container's ID.
// The pod and the container are removed when the test ends.
func (n *node) run(t *testing.T, image string) string {
	t.Helper()
	ctx := t.Context()
	name := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	// No concurrent test run uses this cgroup.
	cgroup := fmt.Sprintf("/slipway-test-%d-%s", os.Getpid(), name)
	t.Cleanup(func() {
		if err := teardown.Cgroups(cgroup); err != nil {
			t.Error(err)
		}
	})
	pod := &criapi.PodSandboxConfig{
		Metadata:     &criapi.PodSandboxMetadata{Name: name, Namespace: "test", Uid: fmt.Sprint(time.Now().UnixNano())},
		LogDirectory: filepath.Join(t.TempDir(), "log"),
		Linux: &criapi.LinuxPodSandboxConfig{
			CgroupParent: cgroup,
			SecurityContext: &criapi.LinuxSandboxSecurityContext{
				NamespaceOptions: &criapi.NamespaceOption{Network: criapi.NamespaceMode_NODE},
			},
		},
	}
	sandbox, err := n.runtime.RunPodSandbox(ctx, &criapi.RunPodSandboxRequest{Config: pod})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if _, err := n.runtime.StopPodSandbox(ctx, &criapi.StopPodSandboxRequest{PodSandboxId: sandbox.PodSandboxId}); err != nil {
			t.Error(err)
		}
		if _, err := n.runtime.RemovePodSandbox(ctx, &criapi.RemovePodSandboxRequest{PodSandboxId: sandbox.PodSandboxId}); err != nil {
			t.Error(err)
		}
	})
	created, err := n.runtime.CreateContainer(ctx, &criapi.CreateContainerRequest{
		PodSandboxId:  sandbox.PodSandboxId,
		SandboxConfig: pod,
		Config: &criapi.ContainerConfig{
			Metadata: &criapi.ContainerMetadata{Name: "main"},
			Image:    &criapi.ImageSpec{Image: image},
			Command:  []string{"/bin/sleep", "600"},
			LogPath:  "main.log",
			Linux:    &criapi.LinuxContainerConfig{},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.runtime.StartContainer(ctx, &criapi.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		t.Fatal(err)
	}
	return created.ContainerId
}

// exec runs a command in the container and returns its output.
func (n *node) exec(t *testing.T, container string, command ...string) string {
	t.Helper()
	result, err := n.runtime.ExecSync(t.Context(),
		&criapi.ExecSyncRequest{ContainerId: container, Cmd: command, Timeout: 30}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if result.ExitCode != 0 {
		t.Fatalf("%q: exit status %d: %s%s", command, result.ExitCode, result.Stdout, result.Stderr)
	}
	return string(result.Stdout)
}
