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

// managedBy is the label of CSIDriver objects that are ours to change. One that an administrator or a driver's own manifest
// made is left as it is.
const managedBy = "app.kubernetes.io/managed-by"

const manager = "slipway"

// look is how often the object is compared with what it should be, so that one that was deleted comes back.
const look = time.Minute

// Object is the part that keeps the CSIDriver object of one driver, which tells Kubernetes how to treat the driver.
type Object struct {
	Drivers storageclient.CSIDriverInterface
	// Driver is the driver's name.
	Driver string
	// Spec is what the object says.
	Spec storagev1.CSIDriverSpec
}

// Name is the part's name.
func (o *Object) Name() string { return "csi-driver-object " + o.Driver }

// Run makes the object and makes it again when it is changed or deleted. It is ready at once: without the object Kubernetes
// treats a driver by defaults.
func (o *Object) Run(ctx context.Context, ready func()) error {
	ready()
	retry := newRetry()
	for ctx.Err() == nil {
		pause := look
		if err := o.ensure(ctx); err == nil {
			retry = newRetry()
		} else if ctx.Err() == nil {
			slog.Warn("CSIDriver object is not as it should be", "driver", o.Driver, "cause", err)
			pause = retry.Step()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// ensure makes or changes the object once.
func (o *Object) ensure(ctx context.Context) error {
	wanted := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: o.Driver, Labels: map[string]string{managedBy: manager}}, Spec: o.Spec}
	found, err := o.Drivers.Get(ctx, o.Driver, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = o.Drivers.Create(ctx, wanted, metav1.CreateOptions{})
		return wrap("create", o.Driver, err)
	case err != nil:
		return wrap("read", o.Driver, err)
	case found.Labels[managedBy] != manager || !differs(o.Spec, found.Spec):
		return nil
	case fixedDiffers(o.Spec, found.Spec):
		return o.replace(ctx, found, wanted)
	}
	found = found.DeepCopy()
	overlay(&found.Spec, o.Spec)
	_, err = o.Drivers.Update(ctx, found, metav1.UpdateOptions{})
	return wrap("update", o.Driver, err)
}

// replace makes the object anew, since the API server lets no one change some of its fields.
func (o *Object) replace(ctx context.Context, old, wanted *storagev1.CSIDriver) error {
	same := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &old.UID}}
	if err := o.Drivers.Delete(ctx, o.Driver, same); err != nil && !apierrors.IsNotFound(err) {
		return wrap("delete", o.Driver, err)
	}
	_, err := o.Drivers.Create(ctx, wanted, metav1.CreateOptions{})
	return wrap("create", o.Driver, err)
}

// differs tells whether a field that is wanted has another value. What is not wanted, the API server fills in.
func differs(wanted, found storagev1.CSIDriverSpec) bool {
	merged := *found.DeepCopy()
	overlay(&merged, wanted)
	return !reflect.DeepEqual(merged, found)
}

// fixedDiffers tells the same of the fields that cannot be changed.
func fixedDiffers(wanted, found storagev1.CSIDriverSpec) bool {
	only := storagev1.CSIDriverSpec{AttachRequired: wanted.AttachRequired, VolumeLifecycleModes: wanted.VolumeLifecycleModes}
	return differs(only, found)
}

// overlay lays the fields that are set over a specification.
func overlay(base *storagev1.CSIDriverSpec, wanted storagev1.CSIDriverSpec) {
	to, from := reflect.ValueOf(base).Elem(), reflect.ValueOf(wanted)
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
}

func wrap(verb, driver string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s CSIDriver object %q: %w", verb, driver, err)
}
