// Package node runs the node's parts of upstream Kubernetes inside the node's process: kubelet and
// the service proxy. Both end their process on some errors, which is why they never share one with
// etcd and the API server; the supervisor starts the process again.
//
// As in package kube, a part is a struct whose fields are everything it depends on.
package node

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// poll calls probe about ten times a second until it says true, and says whether it ever did before
// ctx ended.
func poll(ctx context.Context, probe func(context.Context) bool) bool {
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return probe(ctx), nil
	})
	return err == nil
}
