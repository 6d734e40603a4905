// Package node runs upstream Kubernetes' node components: the kubelet and the service proxy. On
// some errors, either component exits the process. Therefore, they never run in the same process as
// etcd and the API server. The supervisor restarts their process.
//
// As in package kube, each component is a struct whose fields are all its dependencies.
package node

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// poll calls probe ten times per second until it returns true. poll returns false if ctx is done
// first.
func poll(ctx context.Context, probe func(context.Context) bool) bool {
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return probe(ctx), nil
	})
	return err == nil
}
