package ansible

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	genericserver "k8s.io/apiserver/pkg/server"
)

// sweepInterval is the interval between calls to sweep. These calls are a safety net. Normally,
// polls from the platform continue and complete the operations.
const sweepInterval = time.Minute

// firstRetry is the initial value of the delay between import attempts. Each failure doubles the
// delay, up to sweepInterval. An import fails, for example, if the API server is still starting.
const firstRetry = time.Second

// importTimeout is the maximum duration of an import from all registries.
const importTimeout = 5 * time.Minute

// sandboxLabel is the label of sandboxes.
const sandboxLabel = "slipway.openshift.io/ansible-sandbox"

// startSweeping calls sweep periodically until the API server shuts down.
func (b *broker) startSweeping(hook genericserver.PostStartHookContext) error {
	go b.sweepRegularly(hook.Context)
	return nil
}

func (b *broker) sweepRegularly(ctx context.Context) {
	for delay := firstRetry; ; {
		err := b.importInTime(ctx)
		if err != nil && ctx.Err() == nil {
			slog.Warn("cannot import bundles from registries", "error", err)
			delay = min(2*delay, sweepInterval)
		}
		if err == nil {
			delay = sweepInterval
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
		if err := b.sweep(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("cannot continue bundle operations or delete unused sandboxes", "error", err)
		}
	}
}

// importInTime calls importRegistries with a timeout, so that a registry that never completes a
// response does not prevent the next sweep.
func (b *broker) importInTime(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	return b.importRegistries(ctx)
}

// sweep continues all operations in progress, and deletes the sandboxes of all other operations.
// Without sweep, operations that a platform no longer polls would keep their sandboxes and role
// bindings.
func (b *broker) sweep(ctx context.Context) error {
	running, err := b.selectRecords(ctx, labels.Set{runningLabel: "true"}.String())
	if err != nil {
		return err
	}
	var errs []error
	for _, rec := range running {
		// A conflict means that a poll from the platform has already continued the operation.
		if err := b.advance(ctx, rec); err != nil && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("continue operation of instance %q: %w", rec.ID, err))
		}
	}
	errs = append(errs, b.sweepHeld(ctx))
	sandboxes, err := b.kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: sandboxLabel})
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("list sandboxes: %w", err))...)
	}
	for i := range sandboxes.Items {
		errs = append(errs, b.sweepSandbox(ctx, &sandboxes.Items[i]))
	}
	return errors.Join(errs...)
}

// sweepSandbox deletes a sandbox whose operation is not in progress.
func (b *broker) sweepSandbox(ctx context.Context, sandbox *corev1.Namespace) error {
	if sandbox.DeletionTimestamp != nil {
		return nil
	}
	rec, err := b.load(ctx, sandbox.Annotations[operationAnnotation])
	switch {
	case err != nil:
		return err
	case rec == nil || rec.Operation == nil || rec.Operation.Name != sandbox.Name:
		// Only the sandbox remains: the operation's role bindings in other namespaces were deleted
		// before another operation replaced it.
		if b.options.KeepNamespace || b.options.KeepNamespaceOnError {
			return nil
		}
		return b.deleteSandbox(ctx, sandbox.Name)
	case rec.Operation.State == inProgress:
		return nil
	}
	return b.clean(ctx, rec)
}
