// Package groupconfig applies a node group's configuration to a node. In OpenShift 3, the pods of
// the `sync` DaemonSet do this.
//
//	annotation of the Node    →  ConfigMap  →  node-config.yaml  →  the process restarts
//	names the configuration                                         ↓
//	Node: hash, or the reason for a rejection       ←               ready, or reverted
//
// The control plane (package controller/nodegroup) selects the configuration for one node at a
// time. Pods continue to run while the process restarts.
package groupconfig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/nodegroup"
)

const (
	// readyTimeout is the maximum time that the process may take to become ready with a new
	// configuration. After that, the configuration is reverted.
	readyTimeout = 3 * time.Minute
	// maxStarts is the maximum number of times that the process is started with a configuration
	// that does not become ready.
	maxStarts = 3
	// retryInterval is the interval between attempts after an error.
	retryInterval = time.Second
)

// ErrRestart means that the process must restart because node-config.yaml has changed.
var ErrRestart = errors.New("the node restarts with the changed configuration of its node group")

// Change is the result of merging a group's configuration into the node's configuration.
type Change struct {
	// File is the new node-config.yaml.
	File []byte
	// Applied is the part of File that comes from the group. See Sync.Merge.
	Applied []byte
	// Restart means that the process must restart.
	Restart bool
}

// Sync is the component that applies its group's configuration to the node.
type Sync struct {
	// Client must be allowed to read the node groups' ConfigMaps and to change the Node.
	Client kubernetes.Interface
	// Node is the name of the Node.
	Node string
	// File is the path of node-config.yaml. Record is the path of the component's own record.
	File, Record string
	// Merge merges a group's configuration into File. applied is Change.Applied from the last call
	// that took effect. The error is the reason why the node rejects the configuration.
	Merge func(applied, group []byte) (*Change, error)
	// Ready is closed when all components of the process are ready.
	Ready <-chan struct{}

	timeout time.Duration // readyTimeout, or a shorter timeout in tests
	record  *record
	failure string // the last logged error
}

// Name returns the component's name.
func (*Sync) Name() string { return "node-config" }

// Run applies the configuration that the Node's annotation specifies, and each later change, until
// ctx is done. It returns ErrRestart if the process must restart.
func (s *Sync) Run(ctx context.Context, ready func()) error {
	var err error
	if s.record, err = readRecord(s.Record); err != nil {
		return err
	}
	restart, err := s.begin()
	if err != nil || restart {
		return errors.Join(err, restartError(restart))
	}
	ready()
	if restart, err := s.finish(ctx); err != nil || restart {
		return errors.Join(err, restartError(restart))
	}
	if ctx.Err() != nil {
		return nil
	}
	return s.follow(ctx)
}

func restartError(restart bool) error {
	if restart {
		return ErrRestart
	}
	return nil
}

// begin counts a start with a new configuration. After too many starts, it reverts the
// configuration.
func (s *Sync) begin() (restart bool, err error) {
	current := s.record.Attempt
	if current == nil {
		return false, nil
	}
	if sumOf(s.File) != current.File {
		// The host crashed before the file was written, or an administrator changed the file.
		s.record.Attempt = nil
		return false, s.record.write(s.Record)
	}
	if current.Starts++; current.Starts > maxStarts {
		return true, s.revert(fmt.Sprintf("the node process exited %d times before it was ready; to see the reason, run `slipway logs node` on the host", maxStarts))
	}
	return false, s.record.write(s.Record)
}

// finish waits until the process is ready with a new configuration. If it times out, it reverts the
// configuration.
func (s *Sync) finish(ctx context.Context) (restart bool, err error) {
	current := s.record.Attempt
	if current == nil {
		return false, nil
	}
	if s.timeout == 0 {
		s.timeout = readyTimeout
	}
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, nil
	case <-s.Ready:
		*s.record = record{Hash: current.Hash, Applied: current.Applied}
		return false, s.record.write(s.Record)
	case <-timer.C:
		return true, s.revert(fmt.Sprintf("the node was not ready after %s; to see the reason, run `slipway logs node` on the host", s.timeout))
	}
}

// revert restores the previous file, and then updates the record. If the revert is interrupted
// after the file is restored but before the record is updated, it is repeated.
func (s *Sync) revert(reason string) error {
	current := s.record.Attempt
	if err := atomicfile.Write(s.File, current.Previous, 0o600); err != nil {
		return err
	}
	slog.Error("reverted the node group's configuration", "hash", current.Hash, "error", reason)
	s.record.Attempt, s.record.Refused, s.record.Reason, s.record.Reverted = nil, current.Hash, reason, true
	return s.record.write(s.Record)
}

// follow applies configurations until ctx is done or the process must restart.
func (s *Sync) follow(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", s.Node).String()
	}))
	nodes := factory.Core().V1().Nodes()
	changes := make(chan struct{}, 1)
	notify := func(any) {
		select {
		case changes <- struct{}{}:
		default:
		}
	}
	_, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: notify, UpdateFunc: func(old, new any) {
			if relevant(old.(*corev1.Node), new.(*corev1.Node)) {
				notify(new)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch node %q: %w", s.Node, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		}
		node, err := nodes.Lister().Get(s.Node)
		if err != nil {
			continue // the node was just deleted
		}
		err = s.reconcile(ctx, node)
		if errors.Is(err, ErrRestart) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			s.log(err)
			time.AfterFunc(retryInterval, func() { notify(nil) })
		}
	}
}

// log logs an error, unless the previous attempt had the same error.
func (s *Sync) log(err error) {
	if text := err.Error(); text != s.failure {
		s.failure = text
		slog.Warn("cannot watch the node group's configuration", "error", err)
	}
}

func relevant(old, new *corev1.Node) bool {
	for _, key := range []string{nodegroup.DesiredAnnotation, nodegroup.HashAnnotation, nodegroup.RefusedAnnotation} {
		if old.Annotations[key] != new.Annotations[key] {
			return true
		}
	}
	return false
}

// reconcile reports the state of the configuration, and applies the configuration that the Node's
// annotation specifies.
func (s *Sync) reconcile(ctx context.Context, node *corev1.Node) error {
	name, hash, ok := nodegroup.ParseDesired(node.Annotations[nodegroup.DesiredAnnotation])
	if ok && hash != s.record.Hash && hash != s.record.Refused {
		if err := s.apply(ctx, name, hash); err != nil {
			return err
		}
	}
	if ok && hash == s.record.Hash && s.record.Refused != "" {
		// The ConfigMap's previous content has been restored, so clear the rejection.
		s.record.Refused, s.record.Reason, s.record.Reverted = "", "", false
		if err := s.record.write(s.Record); err != nil {
			return err
		}
	}
	return s.report(ctx, node)
}

// apply writes the configuration from a ConfigMap with the given hash. It returns nil if the
// ConfigMap has changed, because the control plane then specifies the next version.
func (s *Sync) apply(ctx context.Context, name, hash string) error {
	object, err := s.Client.CoreV1().ConfigMaps(nodegroup.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read node group configuration: %w", err)
	}
	content := object.Data[nodegroup.Key]
	if nodegroup.Hash(content) != hash {
		return nil
	}
	change, err := s.Merge(s.record.Applied, []byte(content))
	if err != nil {
		s.record.Refused, s.record.Reason, s.record.Reverted = hash, err.Error(), false
		return s.record.write(s.Record)
	}
	if !change.Restart {
		if err := atomicfile.Write(s.File, change.File, 0o600); err != nil {
			return err
		}
		*s.record = record{Hash: hash, Applied: change.Applied}
		return s.record.write(s.Record)
	}
	previous, err := os.ReadFile(s.File)
	if err != nil {
		return fmt.Errorf("read node configuration: %w", err)
	}
	s.record.Attempt = &attempt{Hash: hash, Applied: change.Applied, File: sum(change.File), Previous: previous}
	if err := s.record.write(s.Record); err != nil {
		return err
	}
	if err := atomicfile.Write(s.File, change.File, 0o600); err != nil {
		return err
	}
	return ErrRestart
}
