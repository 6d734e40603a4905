// Package policy enforces the network policies of pods (networking.k8s.io/v1) on a node.
//
// A pod that a policy selects is isolated: its connections in the direction of the policy are
// dropped unless a policy allows them. The rules are in an nftables table at the forward hook,
// which all packets between pods, and between pods and other hosts, pass:
//
//	packet ── egress chain ── ingress chain ── pod
//	          map: source      map: destination
//	            │                │
//	            ▼                ▼
//	          chain of the pods that the same policies select
//	            ├─ jump: chain of policy 1 ── rules with sets of peers ── accept
//	            ├─ jump: chain of policy 2
//	            └─ drop
//
// The CNI plugin calls the component before a pod starts (see cni.Config.PolicySocket). The call
// returns when the rules for the pod are in the kernel, so no packet precedes them. The component
// identifies the pods of its node by the plugin's leases, not by status.podIP, which arrives later
// and can be stale. If it does not know the labels of a pod, in a project with policies, it drops
// all packets of the pod.
//
// If the component ends, the kernel keeps enforcing the rules, and no pod starts.
//
// Source: Kubernetes documentation, Network Policies; OpenShift Container Platform 3.11 Cluster
// Administration, Enabling NetworkPolicy.
package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/network/cni"
)

// Enforcer is the component that enforces network policies on a node.
type Enforcer struct {
	// NodeName is the name of the node.
	NodeName string
	// Client can watch pods, namespaces and network policies.
	Client kubernetes.Interface
	// Table is the component's nftables table, in family ip.
	Table string
	// Socket is the path of the Unix socket for the CNI plugin.
	Socket string
	// LeaseDir is the directory of the CNI plugin's leases.
	LeaseDir string

	note func(string)
}

// errStopped means that the component ends. The CNI plugin tries again.
var errStopped = errors.New("the component network-policy is stopping")

const (
	// checkInterval is the time between two checks that the table exists.
	checkInterval = 30 * time.Second
	// retryBackoff is the delay after a failure to write the table.
	retryBackoff = time.Second
)

// Name returns the component's name.
func (*Enforcer) Name() string { return "network-policy" }

// Notes sets the function that gets a note while projects are closed because their policies are too
// large.
func (e *Enforcer) Notes(note func(string)) { e.note = note }

// Run enforces policies until ctx ends. The rules stay in force when it returns.
func (e *Enforcer) Run(ctx context.Context, ready func()) error {
	table, err := openTable(e.Table)
	if err != nil {
		return fmt.Errorf("network policy: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(e.Client, 0, informers.WithTransform(trim))
	objects := newObjects(factory)
	changes, err := objects.watch()
	if err != nil {
		return fmt.Errorf("network policy: %w", err)
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if synced := factory.WaitForCacheSyncWithContext(ctx); synced.Err != nil {
		return nil
	}
	server, err := listen(e.Socket, objects)
	if err != nil {
		return fmt.Errorf("network policy: %w", err)
	}
	s := &enforcement{Enforcer: e, objects: objects, table: table, requests: server.requests}
	if err := s.sync(ctx); err != nil {
		server.close()
		return fmt.Errorf("network policy: %w", err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() { server.serve(ctx) })
	ready()
	s.loop(ctx, changes)
	server.close()
	tasks.Wait()
	return nil
}

// enforcement is the state of a running Enforcer.
type enforcement struct {
	*Enforcer
	objects  *objects
	table    *table
	requests <-chan chan<- error // of the CNI plugin
	closed   []string            // the projects that the note names
}

// loop writes the rules after each change and each request, until ctx ends. One write serves all
// changes and requests that preceded it.
func (s *enforcement) loop(ctx context.Context, changes <-chan struct{}) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	var retry <-chan time.Time
	for {
		var waiting []chan<- error
		var err error
		select {
		case <-ctx.Done():
			return
		case request := <-s.requests:
			waiting = append(waiting, request)
		case <-changes:
		case <-retry:
		case <-ticker.C:
			err = s.table.check(ctx)
		}
		waiting = append(waiting, drain(s.requests)...)
		if err == nil {
			err = s.sync(ctx)
		}
		retry = nil
		if err != nil && ctx.Err() == nil {
			slog.Error("cannot enforce network policies", "error", err)
			retry = time.After(retryBackoff)
		}
		for _, request := range waiting {
			request <- err
		}
	}
}

func drain(requests <-chan chan<- error) (waiting []chan<- error) {
	for {
		select {
		case request := <-requests:
			waiting = append(waiting, request)
		default:
			return waiting
		}
	}
}

// sync makes the kernel enforce the policies of now.
func (s *enforcement) sync(ctx context.Context) error {
	if len(s.objects.policies.GetStore().ListKeys()) == 0 {
		s.report(nil)
		return s.table.apply(ctx, newRuleset())
	}
	local, err := cni.ListPods(s.LeaseDir)
	if err != nil {
		return err
	}
	rules := compile(s.objects.snapshot(s.NodeName, local))
	s.report(rules.closed)
	return s.table.apply(ctx, rules)
}

// report notes the projects that are closed, if they have changed.
func (s *enforcement) report(closed []string) {
	if s.note == nil || slices.Equal(closed, s.closed) {
		return
	}
	s.closed = closed
	if len(closed) == 0 {
		s.note("")
		return
	}
	s.note("the network policies are too large, so all connections of pods are dropped in the projects " + strings.Join(closed, ", "))
}
