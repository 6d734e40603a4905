package containerd

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// readyInterval is the interval between checks of whether containerd is ready.
const readyInterval = 50 * time.Millisecond

// WaitReady returns nil when containerd's CRI plugin can run containers (the CRI condition
// RuntimeReady; the network becomes ready later). If ctx is done first, the error contains the
// reason why the plugin is not ready.
func (r Runtime) WaitReady(ctx context.Context) error {
	for {
		err := r.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for containerd: %w: %w", context.Cause(ctx), err)
		case <-time.After(readyInterval):
		}
	}
}

// Ready returns nil if containerd's CRI plugin can run containers. Otherwise, it returns an error
// that contains the reason.
func (r Runtime) Ready(ctx context.Context) error {
	if _, err := os.Stat(r.Socket); err != nil {
		// Without this check, gRPC would log each failed connection.
		return fmt.Errorf("connect to containerd: %w", err)
	}
	connection, err := grpc.NewClient("unix://"+r.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to containerd: %w", err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := criapi.NewRuntimeServiceClient(connection).Status(ctx, &criapi.StatusRequest{})
	if err != nil {
		return fmt.Errorf("read containerd status: %w", err)
	}
	for _, condition := range status.GetStatus().GetConditions() {
		if condition.GetType() != criapi.RuntimeReady {
			continue
		}
		if !condition.GetStatus() {
			return fmt.Errorf("runtime not ready: %s: %s", condition.GetReason(), condition.GetMessage())
		}
		return nil
	}
	return fmt.Errorf("read containerd status: no condition %s", criapi.RuntimeReady)
}
