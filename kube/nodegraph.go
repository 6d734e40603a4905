package kube

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
)

// graphInterval is the interval between checks of the graph.
const graphInterval = 10 * time.Millisecond

// Limits on how long a request waits for the node authorizer's graph. The limits are short, because
// the kubelet also requests deleted pods, one after the other, and the graph never contains deleted
// pods.
const (
	mountTimeout = time.Second
	podTimeout   = 100 * time.Millisecond
)

// lateGraph gives upstream's node authorizer time to observe a pod. The authorizer has its own
// watch on pods. The kubelet can request a new pod and the objects that it mounts before the
// authorizer's graph contains the pod. If upstream denied the request, the kubelet would wait
// several seconds before it retries. lateGraph never allows a request that upstream denies.
type lateGraph struct {
	upstream authorizer.Authorizer
}

// authorize allows requests that upstream allows within the time limit. It returns no opinion on
// any other request.
func (l lateGraph) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	timeout := graphTimeout(a)
	if timeout == 0 {
		return authorizer.DecisionNoOpinion, "", nil
	}
	decision := authorizer.DecisionNoOpinion
	_ = wait.PollUntilContextTimeout(ctx, graphInterval, timeout, true, func(ctx context.Context) (bool, error) {
		now, _, err := l.upstream.Authorize(ctx, a)
		if now == authorizer.DecisionAllow {
			decision = now
		}
		return decision == authorizer.DecisionAllow || err != nil, nil
	})
	return decision, "", nil // upstream's own authorizer returns the reason
}

// graphTimeout returns the time limit for a request. It is 0 unless a node requests one of its pods
// or an object that a pod could use.
func graphTimeout(a authorizer.Attributes) time.Duration {
	_, isNode := nodeidentifier.NewDefaultNodeIdentifier().NodeIdentity(a.GetUser())
	if !isNode || !a.IsResourceRequest() || a.GetAPIGroup() != "" || a.GetName() == "" {
		return 0
	}
	timeout := time.Duration(0)
	switch a.GetResource() {
	case "pods":
		if a.GetVerb() == "get" {
			timeout = podTimeout
		}
	case "serviceaccounts":
		if a.GetVerb() == "create" && a.GetSubresource() == "token" {
			timeout = mountTimeout
		}
	case "secrets", "configmaps", "persistentvolumeclaims", "persistentvolumes":
		if a.IsReadOnly() {
			timeout = mountTimeout
		}
	}
	return timeout
}
