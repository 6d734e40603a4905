package ansible

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

// Actions of a bundle.
const (
	provisionAction   = "provision"
	deprovisionAction = "deprovision"
	updateAction      = "update"
	bindAction        = "bind"
	unbindAction      = "unbind"
)

// States of an operation.
const (
	inProgress = "in progress"
	succeeded  = "succeeded"
	failed     = "failed"
)

// notImplemented is the exit code of a bundle that has no playbook for an action.
const notImplemented = 8

// pollInterval is the interval at which the platform polls an operation, in seconds.
const pollInterval = 3

// Annotations and secret keys that a bundle writes.
const (
	lastOperationAnnotation = "apb_last_operation"
	dashboardAnnotation     = "apb_dashboard_url"
	credentialsKey          = "fields"
)

// begin records an operation, and then starts it. If the same operation is already in progress,
// begin only confirms it. begin does not return an error if the operation cannot be started,
// because each poll from the platform retries the start.
func (b *broker) begin(ctx context.Context, rec *record, op *operation) (osbserver.Response, error) {
	if current := rec.Operation; current != nil && current.State == inProgress {
		if current.Action == op.Action && current.Binding == op.Binding && current.Plan == op.Plan && equal(current.Values, op.Values) {
			return accepted(current), nil
		}
		if err := b.interrupt(ctx, rec, op.Action); err != nil {
			return osbserver.Response{}, err
		}
	}
	if err := b.checkShare(ctx, rec); err != nil {
		return osbserver.Response{}, err
	}
	if rec.Operation != nil {
		if err := b.clean(ctx, rec); err != nil {
			return osbserver.Response{}, err
		}
	}
	op.Name, op.State = "bundle-"+uuid.NewString(), inProgress
	rec.Operation = op
	if _, err := podOf(rec); err != nil {
		return osbserver.Response{}, err
	}
	if err := b.store(ctx, rec); err != nil {
		return osbserver.Response{}, err
	}
	if err := b.advance(ctx, rec); err != nil {
		op.Description = err.Error()
	}
	return accepted(op), nil
}

// maxOperations is the maximum number of operations in progress for a project. The project's quota
// does not limit the operations' pods, because they run in sandboxes.
const maxOperations = 2

// checkShare returns an error if other instances in the project have too many operations in
// progress. The platform then retries the request.
func (b *broker) checkShare(ctx context.Context, rec *record) error {
	selector := labels.SelectorFromSet(labels.Set{projectLabel: rec.Namespace, runningLabel: "true"})
	list, err := b.kube.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return fmt.Errorf("list operations of project %q: %w", rec.Namespace, err)
	}
	others := slices.DeleteFunc(list.Items, func(secret corev1.Secret) bool { return secret.Name == secretName(rec.ID) })
	if len(others) >= maxOperations {
		return osbserver.Busy("project %q has %d operations of bundles in progress", rec.Namespace, len(others))
	}
	return nil
}

// interrupt handles an operation in progress that another action would replace. If the action is
// deprovision, interrupt marks the operation as failed. Otherwise, it continues the operation,
// because the platform that requested the operation might no longer poll it. It returns an error if
// the operation is still in progress.
func (b *broker) interrupt(ctx context.Context, rec *record, action string) error {
	if action == deprovisionAction {
		rec.Operation.State = failed
		return nil
	}
	if err := b.advance(ctx, rec); err != nil {
		return err
	}
	if rec.Operation.State == inProgress {
		return osbserver.Busy("instance %q has an operation in progress: %s", rec.ID, rec.Operation.Action)
	}
	return nil
}

func accepted(op *operation) osbserver.Response {
	return osbserver.Response{Code: http.StatusAccepted, Body: map[string]string{"operation": op.Name}}
}

// advance continues a record's operation: it creates the pod, or completes the operation if the pod
// has exited.
func (b *broker) advance(ctx context.Context, rec *record) error {
	op := rec.Operation
	if op.State != inProgress {
		return b.clean(ctx, rec)
	}
	pod, err := b.kube.CoreV1().Pods(op.Name).Get(ctx, op.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read pod of operation %q: %w", op.Name, err)
	}
	if err != nil {
		terminating, err := b.terminates(ctx, rec.Namespace)
		held := true
		if err == nil && terminating {
			held, err = b.isHeld(ctx, rec)
		}
		deletes := op.Action == deprovisionAction || op.Action == unbindAction
		switch {
		case err != nil:
			return err
		case terminating && deletes && !held: // the bundle cannot get a role in the project
			return b.end(ctx, rec, succeeded, "the project is being deleted with its content", nil)
		case terminating && !deletes:
			return b.end(ctx, rec, failed, "the project is being deleted", nil)
		}
		return b.launch(ctx, rec)
	}
	op.Description = cmp.Or(pod.Annotations[lastOperationAnnotation], waitingReason(pod))
	if op.hasContainerCredentials() && pod.Status.Phase == corev1.PodRunning {
		if err := b.collect(ctx, rec); err != nil {
			return err
		}
	}
	done := pod.Status.Phase == corev1.PodSucceeded
	code := exitCode(pod)
	if pod.Status.Phase == corev1.PodFailed && code == notImplemented && (op.Action == bindAction || op.Action == unbindAction) {
		done = true
	}
	if done || pod.Status.Phase == corev1.PodFailed {
		err := b.readState(ctx, rec)
		if errors.Is(err, errState) {
			return b.end(ctx, rec, failed, err.Error(), nil)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case done:
		credentials, err := b.credentials(ctx, op)
		if err != nil {
			return err
		}
		if address := pod.Annotations[dashboardAnnotation]; address != "" && isDashboard(address) {
			rec.Dashboard = address
		}
		return b.end(ctx, rec, succeeded, op.Description, credentials)
	case pod.Status.Phase == corev1.PodFailed:
		cause := cmp.Or(pod.Status.Reason, fmt.Sprintf("exit code %d", code))
		if code == notImplemented {
			cause = "the bundle has no playbook for this action"
		}
		text := fmt.Sprintf("bundle %q: %s ended with an error: %s", op.Bundle.Name, op.Action, cause)
		if progress := pod.Annotations[lastOperationAnnotation]; progress != "" {
			text += ": " + progress
		}
		return b.end(ctx, rec, failed, text, nil)
	}
	return nil
}

// isDashboard reports whether browsers can open a URL as a page.
func isDashboard(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && len(address) <= 1024 && parsed.Host != "" && (parsed.Scheme == "http" || parsed.Scheme == "https")
}

// exitCode returns the exit code of a pod's container, or -1 if the container has not exited.
func exitCode(pod *corev1.Pod) int32 {
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Terminated != nil {
			return status.State.Terminated.ExitCode
		}
	}
	return -1
}

// waitingReason returns the reason why a pod's container has not started, or "".
func waitingReason(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Waiting != nil {
			return status.State.Waiting.Reason
		}
	}
	return ""
}

// credentials returns the credentials that a bundle has written to a secret, or that collect has
// read from its container. It returns nil if there are none.
func (b *broker) credentials(ctx context.Context, op *operation) (map[string]any, error) {
	if op.hasContainerCredentials() {
		return op.Credentials, nil
	}
	name := op.Name
	secret, err := b.kube.CoreV1().Secrets(name).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read credentials of operation %q: %w", name, err)
	}
	values := map[string]any{}
	if err := json.Unmarshal(secret.Data[credentialsKey], &values); err != nil {
		return nil, fmt.Errorf("secret %s/%s: key %q is not a JSON object", name, name, credentialsKey)
	}
	return values, nil
}

// end records the result of an operation, and then deletes the sandbox. After a successful
// deprovision operation, it deletes the instance's record instead.
func (b *broker) end(ctx context.Context, rec *record, state, description string, credentials map[string]any) error {
	op := rec.Operation
	op.State, op.Description, op.Credentials = state, description, nil
	if state == succeeded && op.Action == deprovisionAction {
		if err := b.clean(ctx, rec); err != nil {
			return err
		}
		return b.forget(ctx, rec)
	}
	rec.apply(credentials)
	if err := b.store(ctx, rec); err != nil {
		return err
	}
	return b.clean(ctx, rec)
}

// apply updates a record with the result of its operation, which has finished.
func (rec *record) apply(credentials map[string]any) {
	op := rec.Operation
	if op.State == failed {
		if op.Action == bindAction {
			rec.Bindings[op.Binding] = &bindingRecord{Values: op.Values, Failure: op.Description}
		}
		return
	}
	switch op.Action {
	case provisionAction:
		rec.Provisioned, rec.Credentials = true, credentials
	case updateAction:
		rec.Plan, rec.Values, rec.Bundle = op.Plan, op.Values, op.Bundle
		if credentials != nil {
			rec.Credentials = credentials
		}
	case bindAction:
		if credentials == nil {
			credentials = rec.Credentials
		}
		rec.Bindings[op.Binding] = &bindingRecord{Values: op.Values, Credentials: credentials}
	case unbindAction:
		delete(rec.Bindings, op.Binding)
	}
}

// lastOperation continues an operation and returns its state.
func (b *broker) lastOperation(r *http.Request) (osbserver.Response, error) {
	id, err := osbserver.ID(r, "instance")
	if err != nil {
		return osbserver.Response{}, err
	}
	rec, err := b.load(r.Context(), id)
	if err != nil {
		return osbserver.Response{}, err
	}
	if rec == nil || rec.Operation == nil {
		return osbserver.Response{Code: http.StatusGone, Body: osbserver.Empty{}}, nil
	}
	op, name := rec.Operation, r.URL.Query().Get("operation")
	if name != "" && name != op.Name {
		return rec.formerOperation(r.PathValue("binding"), name)
	}
	if err := b.advance(r.Context(), rec); err != nil {
		return osbserver.Response{}, err
	}
	if op.State == succeeded && op.Action == unbindAction {
		return osbserver.Response{Code: http.StatusGone, Body: osbserver.Empty{}}, nil
	}
	return state(op.State, op.Description), nil
}

// formerOperation returns the state of an operation that a later operation has replaced.
func (rec *record) formerOperation(binding, name string) (osbserver.Response, error) {
	existing := rec.Bindings[binding]
	switch {
	case binding == "":
		return osbserver.Response{}, osbserver.Refuse(http.StatusBadRequest, "instance %q has no operation %q", rec.ID, name)
	case existing == nil:
		return osbserver.Response{Code: http.StatusGone, Body: osbserver.Empty{}}, nil
	case existing.Failure != "":
		return state(failed, existing.Failure), nil
	}
	return state(succeeded, ""), nil
}

func state(state, description string) osbserver.Response {
	resp := osbserver.Response{Code: http.StatusOK, Body: map[string]string{"state": state, "description": description}}
	if state == inProgress {
		resp.RetryAfter = pollInterval
	}
	return resp
}
