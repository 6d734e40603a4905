package teardown

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// parallel is the number of pods that are stopped concurrently.
const parallel = 8

// Pods stops and removes all pods in the container runtime whose CRI socket is at path socket. Each
// container's processes receive SIGTERM, and SIGKILL after the grace period. If no runtime listens,
// Pods is a no-op; use Processes for the remaining processes.
func Pods(ctx context.Context, socket string, gracePeriod time.Duration) error {
	probe, err := net.Dial("unix", socket)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("connect to container runtime: %w", err)
	}
	probe.Close()
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to container runtime: %w", err)
	}
	defer connection.Close()
	runtime := criapi.NewRuntimeServiceClient(connection)
	resp, err := runtime.ListPodSandbox(ctx, &criapi.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("list pods of %q: %w", socket, err)
	}

	pods := resp.GetItems()
	errs := make([]error, len(pods))
	limit := make(chan struct{}, parallel)
	var group sync.WaitGroup
	for i, pod := range pods {
		group.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			if err := removePod(ctx, runtime, pod.GetId(), gracePeriod); err != nil {
				name := pod.GetMetadata().GetNamespace() + "/" + pod.GetMetadata().GetName()
				errs[i] = fmt.Errorf("pod %s (sandbox %s) remains: %w", name, pod.GetId(), err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// removePod stops all of a pod's containers concurrently, each within the grace period, and then
// removes the pod.
func removePod(ctx context.Context, runtime criapi.RuntimeServiceClient, id string, gracePeriod time.Duration) error {
	resp, err := runtime.ListContainers(ctx, &criapi.ListContainersRequest{Filter: &criapi.ContainerFilter{PodSandboxId: id}})
	if err != nil {
		return fmt.Errorf("list containers: %w", err)
	}
	containers := resp.GetContainers()
	errs := make([]error, len(containers))
	var group sync.WaitGroup
	for i, container := range containers {
		group.Go(func() {
			_, err := runtime.StopContainer(ctx, &criapi.StopContainerRequest{
				ContainerId: container.GetId(),
				Timeout:     int64(gracePeriod.Round(time.Second) / time.Second),
			})
			if err != nil {
				errs[i] = fmt.Errorf("stop container %s: %w", container.GetMetadata().GetName(), err)
			}
		})
	}
	group.Wait()
	// Stopping the sandbox kills the remaining containers, so the errors of individual containers
	// matter only if stopping the sandbox fails as well.
	if _, err := runtime.StopPodSandbox(ctx, &criapi.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		return errors.Join(append(errs, fmt.Errorf("stop: %w", err))...)
	}
	if _, err := runtime.RemovePodSandbox(ctx, &criapi.RemovePodSandboxRequest{PodSandboxId: id}); err != nil {
		return errors.Join(append(errs, fmt.Errorf("remove: %w", err))...)
	}
	return nil
}
