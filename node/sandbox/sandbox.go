// Package sandbox finds pods' network namespaces in the container runtime.
package sandbox

import (
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"
)

// Network returns the path of a running pod's network namespace. The path is in /proc and is valid
// while the pod runs. socket is the path of the runtime's CRI socket. Network returns an error if
// the pod does not run on this host.
func Network(ctx context.Context, socket, namespace, name string) (string, error) {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", fmt.Errorf("connect to container runtime: %w", err)
	}
	defer connection.Close()
	runtime := criapi.NewRuntimeServiceClient(connection)
	resp, err := runtime.ListPodSandbox(ctx, &criapi.ListPodSandboxRequest{Filter: &criapi.PodSandboxFilter{
		State: &criapi.PodSandboxStateValue{State: criapi.PodSandboxState_SANDBOX_READY},
		LabelSelector: map[string]string{
			kubelettypes.KubernetesPodNamespaceLabel: namespace, kubelettypes.KubernetesPodNameLabel: name,
		},
	}})
	if err != nil {
		return "", fmt.Errorf("list pods of %q: %w; start the host with `slipway up`", socket, err)
	}
	if len(resp.GetItems()) == 0 {
		return "", fmt.Errorf("find pod %s/%s: it does not run on this host; to see the host of each pod, run: oc get pods -o wide", namespace, name)
	}
	status, err := runtime.PodSandboxStatus(ctx, &criapi.PodSandboxStatusRequest{PodSandboxId: resp.GetItems()[0].GetId(), Verbose: true})
	if err != nil {
		return "", fmt.Errorf("get status of pod %s/%s: %w", namespace, name, err)
	}
	return processNetwork(status.GetInfo()["info"])
}

// processNetwork returns the network namespace of the process in containerd's verbose status. info
// is the status in JSON.
func processNetwork(info string) (string, error) {
	var sandbox struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(info), &sandbox); err != nil {
		return "", fmt.Errorf("decode pod status: %w", err)
	}
	if sandbox.PID <= 0 {
		return "", fmt.Errorf("find pod network: the pod has no running process")
	}
	return fmt.Sprintf("/proc/%d/ns/net", sandbox.PID), nil
}
