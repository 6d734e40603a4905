package ansible

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

const (
	// sandboxTimeout is the maximum time to wait for objects that controllers add to a new sandbox.
	// If the timeout expires, the platform's next poll continues the operation.
	sandboxTimeout  = 10 * time.Second
	sandboxInterval = 200 * time.Millisecond
	// operationLimit is the maximum duration of an operation's pod, in seconds.
	operationLimit = 3600
	// maxArgument is the maximum size of the pod's extra-vars argument, in bytes. Linux limits an
	// argument to 128 KiB.
	maxArgument = 100 << 10
	container   = "apb"
	// operationAnnotation is the sandbox annotation that contains the instance ID.
	operationAnnotation = "slipway.openshift.io/ansible-service-instance"
)

// rights returns the roles that the service account of an operation's pod has in each namespace.
func (b *broker) rights(rec *record) map[string]string {
	op := rec.Operation
	rights := map[string]string{op.Bundle.Namespace: "system:image-puller"}
	rights[op.Name] = "edit" // to write the credentials secret and to annotate the pod itself
	rights[rec.Namespace] = b.options.SandboxRole
	return rights
}

// launch creates the missing objects in an operation's sandbox, including the pod.
func (b *broker) launch(ctx context.Context, rec *record) error {
	name := rec.Operation.Name
	_, err := b.kube.CoreV1().Namespaces().Create(ctx, sandboxOf(rec), metav1.CreateOptions{})
	if err = ignoreExisting(err); err == nil {
		_, err = b.kube.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		err = ignoreExisting(err)
	}
	if err == nil {
		err = b.copyMounts(ctx, rec)
	}
	if err == nil {
		err = b.grant(ctx, rec)
	}
	if err != nil {
		return fmt.Errorf("create sandbox %q: %w", name, err)
	}
	return b.createPod(ctx, rec)
}

// grant binds the service account of an operation's pod to its roles.
func (b *broker) grant(ctx context.Context, rec *record) error {
	name := rec.Operation.Name
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: name}
	terminating, err := b.terminates(ctx, rec.Namespace)
	if err != nil {
		return err
	}
	switch {
	case terminating:
		err = b.setHeld(ctx, rec, subject)
	case rec.secret != nil: // a trial has no stored record, and therefore no secret
		err = b.hold(ctx, rec)
	}
	if err != nil {
		return err
	}
	for namespace, role := range b.rights(rec) {
		if terminating && namespace == rec.Namespace {
			continue
		}
		_, err := b.kube.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{subject},
		}, metav1.CreateOptions{})
		if err = ignoreExisting(err); err != nil {
			return err
		}
	}
	return nil
}

// sandboxOf returns an operation's sandbox.
func sandboxOf(rec *record) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: rec.Operation.Name, Labels: map[string]string{sandboxLabel: "true"},
		Annotations: map[string]string{
			operationAnnotation: rec.ID, "openshift.io/display-name": rec.Operation.Bundle.Name + ": " + rec.Operation.Action,
		},
	}}
}

func ignoreExisting(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// createPod creates the pod with the identity of the pod's service account, so that the account's
// security context constraints apply instead of the broker's. It waits until controllers have
// prepared the namespace and the account. createPod adds the account's pull secrets to the pod,
// because the admission plugin might use a stale copy of the account without them.
func (b *broker) createPod(ctx context.Context, rec *record) error {
	name := rec.Operation.Name
	config := rest.CopyConfig(b.loopback)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + name + ":" + name}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect as the service account of sandbox %q: %w", name, err)
	}
	pod, err := podOf(rec)
	if err != nil {
		return err
	}
	b.mount(pod, rec)
	var cause error
	err = wait.PollUntilContextTimeout(ctx, sandboxInterval, sandboxTimeout, true, func(ctx context.Context) (bool, error) {
		account, err := b.kube.CoreV1().ServiceAccounts(name).Get(ctx, name, metav1.GetOptions{})
		if err == nil && len(account.ImagePullSecrets) == 0 {
			err = apierrors.NewForbidden(corev1.Resource("pods"), name, fmt.Errorf("service account %q has no pull secret yet", name))
		}
		if err == nil {
			pod.Spec.ImagePullSecrets = account.ImagePullSecrets
			_, err = client.CoreV1().Pods(name).Create(ctx, pod, metav1.CreateOptions{})
		}
		cause = ignoreExisting(err)
		if apierrors.IsForbidden(cause) {
			return false, nil
		}
		return true, cause
	})
	if err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("create pod of operation %q: %w", name, err)
	}
	return nil
}

// podOf returns an operation's pod.
func podOf(rec *record) (*corev1.Pod, error) {
	op := rec.Operation
	extra, err := rec.arguments()
	if err != nil {
		return nil, err
	}
	limit := int64(operationLimit)
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: op.Name, Labels: map[string]string{
			"apb-action": op.Action, "apb-pod-name": op.Name,
		}},
		Spec: corev1.PodSpec{
			ServiceAccountName: op.Name, RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: &limit,
			Containers: []corev1.Container{{
				Name: container, Image: op.Bundle.Image, ImagePullPolicy: corev1.PullIfNotPresent,
				Args: []string{op.Action, "--extra-vars", extra},
				Env:  []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: field("metadata.name")}, {Name: "POD_NAMESPACE", ValueFrom: field("metadata.namespace")}},
			}},
		},
	}, nil
}

// arguments returns the variables for the playbook as JSON.
func (rec *record) arguments() (string, error) {
	op := rec.Operation
	variables := map[string]any{}
	for key, value := range op.Values {
		variables[key] = value
	}
	for key, value := range map[string]any{
		"namespace": rec.Namespace, "cluster": "openshift", "_apb_plan_id": op.Bundle.PlanName, "_apb_service_class_id": rec.Service,
		"_apb_service_instance_id": rec.ID, "_apb_last_requesting_user": op.User,
	} {
		variables[key] = value
	}
	if op.Action != provisionAction && rec.Credentials != nil {
		variables["_apb_provision_creds"] = rec.Credentials
	}
	if op.Binding != "" {
		variables["_apb_service_binding_id"] = op.Binding
		if existing := rec.Bindings[op.Binding]; op.Action == unbindAction && existing != nil {
			variables["_apb_bind_creds"] = existing.Credentials
		}
	}
	text, err := json.Marshal(variables)
	if err != nil {
		return "", fmt.Errorf("encode parameters: %w", err)
	}
	if len(text) > maxArgument {
		return "", osbserver.Refuse(http.StatusBadRequest, "parameters: they have more than %d bytes", maxArgument)
	}
	return string(text), nil
}

// clean deletes the pod's role bindings after an operation has finished. It also deletes the
// sandbox, unless the options specify that it is kept.
func (b *broker) clean(ctx context.Context, rec *record) error {
	op := rec.Operation
	for namespace := range b.rights(rec) {
		err := b.kube.RbacV1().RoleBindings(namespace).Delete(ctx, op.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete role binding %q of project %q: %w", op.Name, namespace, err)
		}
	}
	if err := b.setHeld(ctx, rec); err != nil {
		return err
	}
	if b.options.KeepNamespace || b.options.KeepNamespaceOnError && op.State == failed {
		return nil
	}
	return b.deleteSandbox(ctx, op.Name)
}

func (b *broker) deleteSandbox(ctx context.Context, name string) error {
	err := b.kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	// A conflict means that the namespace is already being deleted.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete sandbox %q: %w", name, err)
	}
	return nil
}
