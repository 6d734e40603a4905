package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// Label is a node label with the value "true".
type Label struct {
	// Client must be allowed to patch the node.
	Client     kubernetes.Interface
	Node, Name string
}

// labelRetryInterval is the interval between attempts to change a label.
const labelRetryInterval = time.Second

// Set adds the label. It retries until ctx is done.
func (l Label) Set(ctx context.Context) { l.retry(ctx, `"true"`) }

// Remove removes the label. It retries until ctx is done.
func (l Label) Remove(ctx context.Context) { l.retry(ctx, "null") }

func (l Label) retry(ctx context.Context, value string) {
	lastError := ""
	_ = wait.PollUntilContextCancel(ctx, labelRetryInterval, true, func(ctx context.Context) (bool, error) {
		err := l.patch(ctx, value)
		if err != nil && ctx.Err() == nil && err.Error() != lastError {
			lastError = err.Error()
			slog.Warn("cannot change node label", "label", l.Name, "error", err)
		}
		return err == nil, nil
	})
}

// TrySet tries once to add the label.
func (l Label) TrySet(ctx context.Context) error { return l.patch(ctx, `"true"`) }

// patch sets the label to value, which is JSON. "null" removes the label.
func (l Label) patch(ctx context.Context, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, l.Name, value)
	_, err := l.Client.CoreV1().Nodes().Patch(ctx, l.Node, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("label node %q: %w", l.Node, err)
	}
	return nil
}

// Unlabeled is the component that runs instead of a disabled component. It removes the disabled
// component's label from the node.
type Unlabeled struct {
	// Component is the name of the disabled component.
	Component string
	Label     Label
}

// Name returns the component's name.
func (u *Unlabeled) Name() string { return u.Component }

// Run removes the label and waits until ctx is done.
func (u *Unlabeled) Run(ctx context.Context, ready func()) error {
	ready()
	u.Label.Remove(ctx)
	<-ctx.Done()
	return nil
}
