package register

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storageclient "k8s.io/client-go/kubernetes/typed/storage/v1"
)

// managedBy is the label on CSIDriver objects that Slipway manages. Objects created by an
// administrator or from a driver's manifest are not changed.
const managedBy = "app.kubernetes.io/managed-by"

const manager = "slipway"

// syncInterval is the interval at which the object is synced, so that a deleted object is
// recreated.
const syncInterval = time.Minute

// Object is the component that manages one driver's CSIDriver object, which configures how
// Kubernetes uses the driver.
type Object struct {
	Drivers storageclient.CSIDriverInterface
	// Driver is the driver's name.
	Driver string
	// Spec is the object's desired spec.
	Spec storagev1.CSIDriverSpec
}

// Name returns the component's name.
func (o *Object) Name() string { return "csi-driver-object " + o.Driver }

// Run creates the object, and restores the object if it is changed or deleted. It is ready
// immediately, because Kubernetes uses defaults for a driver without a CSIDriver object.
func (o *Object) Run(ctx context.Context, ready func()) error {
	ready()
	backoff := newBackoff()
	for ctx.Err() == nil {
		delay := syncInterval
		if err := o.ensure(ctx); err == nil {
			backoff = newBackoff()
		} else if ctx.Err() == nil {
			slog.Warn("cannot sync CSIDriver object", "driver", o.Driver, "error", err)
			delay = backoff.Step()
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
	return nil
}

// ensure creates or updates the object once.
func (o *Object) ensure(ctx context.Context) error {
	desired := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: o.Driver, Labels: map[string]string{managedBy: manager}}, Spec: o.Spec}
	existing, err := o.Drivers.Get(ctx, o.Driver, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = o.Drivers.Create(ctx, desired, metav1.CreateOptions{})
		return wrap("create", o.Driver, err)
	case err != nil:
		return wrap("read", o.Driver, err)
	case existing.Labels[managedBy] != manager || !differs(o.Spec, existing.Spec):
		return nil
	case fixedDiffers(o.Spec, existing.Spec):
		return o.replace(ctx, existing, desired)
	}
	existing = existing.DeepCopy()
	overlay(&existing.Spec, o.Spec)
	_, err = o.Drivers.Update(ctx, existing, metav1.UpdateOptions{})
	return wrap("update", o.Driver, err)
}

// replace deletes and recreates the object, because some of its fields are immutable.
func (o *Object) replace(ctx context.Context, old, desired *storagev1.CSIDriver) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &old.UID}}
	if err := o.Drivers.Delete(ctx, o.Driver, options); err != nil && !apierrors.IsNotFound(err) {
		return wrap("delete", o.Driver, err)
	}
	_, err := o.Drivers.Create(ctx, desired, metav1.CreateOptions{})
	return wrap("create", o.Driver, err)
}

// differs reports whether a field that is set in desired has a different value in existing. The API
// server sets the other fields.
func differs(desired, existing storagev1.CSIDriverSpec) bool {
	merged := *existing.DeepCopy()
	overlay(&merged, desired)
	return !reflect.DeepEqual(merged, existing)
}

// fixedDiffers is like differs, but compares only the immutable fields.
func fixedDiffers(desired, existing storagev1.CSIDriverSpec) bool {
	immutable := storagev1.CSIDriverSpec{AttachRequired: desired.AttachRequired, VolumeLifecycleModes: desired.VolumeLifecycleModes}
	return differs(immutable, existing)
}

// overlay copies the fields that are set in spec to base.
func overlay(base *storagev1.CSIDriverSpec, spec storagev1.CSIDriverSpec) {
	dst, src := reflect.ValueOf(base).Elem(), reflect.ValueOf(spec)
	for i := range src.NumField() {
		if !src.Field(i).IsZero() {
			dst.Field(i).Set(src.Field(i))
		}
	}
}

func wrap(verb, driver string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s CSIDriver object %q: %w", verb, driver, err)
}
