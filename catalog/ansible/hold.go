package ansible

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A role binding cannot be created in a project that is being deleted. Therefore, the broker
// creates a role binding without subjects in the project when it creates an instance. A finalizer
// keeps the role binding until the instance is deprovisioned. If an operation runs while the
// project is being deleted, the operation's service account becomes the subject of this role
// binding.
const (
	// heldLabel is the label on these role bindings. heldAnnotation is the annotation that contains
	// the ID of the instance.
	heldLabel      = "slipway.openshift.io/ansible-held"
	heldAnnotation = "slipway.openshift.io/ansible-service-instance"
	heldFinalizer  = "slipway.openshift.io/ansible-service-instance"
)

func heldName(id string) string { return "bundle-instance-" + id }

// hold creates an instance's role binding if it does not exist.
func (b *broker) hold(ctx context.Context, rec *record) error {
	_, err := b.kube.RbacV1().RoleBindings(rec.Namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: heldName(rec.ID), Labels: map[string]string{heldLabel: "true"}, Annotations: map[string]string{heldAnnotation: rec.ID},
			Finalizers: []string{heldFinalizer},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.options.SandboxRole},
	}, metav1.CreateOptions{})
	if err = ignoreExisting(err); err != nil {
		return fmt.Errorf("create role binding %q of project %q: %w", heldName(rec.ID), rec.Namespace, err)
	}
	return nil
}

// isHeld reports whether an instance's role binding exists.
func (b *broker) isHeld(ctx context.Context, rec *record) (bool, error) {
	_, err := b.kube.RbacV1().RoleBindings(rec.Namespace).Get(ctx, heldName(rec.ID), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// setHeld sets the subjects of an instance's role binding, if the binding exists.
func (b *broker) setHeld(ctx context.Context, rec *record, subjects ...rbacv1.Subject) error {
	bindings := b.kube.RbacV1().RoleBindings(rec.Namespace)
	binding, err := bindings.Get(ctx, heldName(rec.ID), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && slices.Equal(binding.Subjects, subjects) {
		return nil
	}
	if err == nil {
		binding.Subjects = subjects
		_, err = bindings.Update(ctx, binding, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("change role binding %q of project %q: %w", heldName(rec.ID), rec.Namespace, err)
	}
	return nil
}

// release deletes an instance's role binding.
func (b *broker) release(ctx context.Context, project, name string) error {
	bindings := b.kube.RbacV1().RoleBindings(project)
	binding, err := bindings.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		binding.Finalizers = slices.DeleteFunc(binding.Finalizers, func(f string) bool { return f == heldFinalizer })
		binding.Subjects = nil
		_, err = bindings.Update(ctx, binding, metav1.UpdateOptions{})
	}
	if err == nil {
		err = bindings.Delete(ctx, name, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete role binding %q of project %q: %w", name, project, err)
	}
	return nil
}

// sweepHeld deletes the role bindings of instances that will not be deprovisioned because they have
// no record. It also deletes the role binding if the project is being deleted and the
// ServiceInstance no longer exists, for example because it was abandoned.
func (b *broker) sweepHeld(ctx context.Context) error {
	bindings, err := b.kube.RbacV1().RoleBindings("").List(ctx, metav1.ListOptions{LabelSelector: heldLabel})
	if err != nil {
		return fmt.Errorf("list instance role bindings: %w", err)
	}
	for i := range bindings.Items {
		binding := &bindings.Items[i]
		id := binding.Annotations[heldAnnotation]
		if binding.Name != heldName(id) || binding.DeletionTimestamp == nil {
			continue
		}
		needed, err := b.needsHeld(ctx, binding.Namespace, id)
		if err == nil && !needed {
			err = b.release(ctx, binding.Namespace, binding.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// needsHeld reports whether an instance can still be deprovisioned.
func (b *broker) needsHeld(ctx context.Context, project, id string) (bool, error) {
	rec, err := b.load(ctx, id)
	if err != nil || rec == nil || rec.Namespace != project {
		return false, err
	}
	if rec.Operation != nil && rec.Operation.State == inProgress {
		return true, nil
	}
	terminating, err := b.terminates(ctx, project)
	if err != nil || !terminating {
		return true, err
	}
	return b.ordered(ctx, project, id)
}
