// Package storageclient limits the client of local storage to objects of its own driver.
//
// RBAC cannot tell PersistentVolumes apart. Without this plugin, the holder of the client's key
// could create a PersistentVolume for any directory of any node, and one that names any secret.
package storageclient

import (
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
)

// Name is the name of the admission plugin in the configuration.
const Name = "slipway.io/StorageClient"

// Feature returns the plugin. It limits users in a group to the objects of a CSI driver.
func Feature(group, driver string) apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(io.Reader) (admission.Interface, error) { return newPlugin(group, driver), nil },
	}}}
}

// plugin is the plugin.
type plugin struct {
	*admission.Handler
	group, driver string
}

var _ admission.ValidationInterface = &plugin{}

func newPlugin(group, driver string) *plugin {
	return &plugin{admission.NewHandler(admission.Create, admission.Update, admission.Delete), group, driver}
}

// Validate rejects requests about objects of other drivers. An update must not change the driver.
func (p *plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !slices.Contains(a.GetUserInfo().GetGroups(), p.group) {
		return nil
	}
	for _, object := range []runtime.Object{a.GetOldObject(), a.GetObject()} {
		if err := p.check(a.GetResource().GroupResource(), object); err != nil {
			return admission.NewForbidden(a, err)
		}
	}
	before, _ := a.GetOldObject().(*corev1.PersistentVolumeClaim)
	after, _ := a.GetObject().(*corev1.PersistentVolumeClaim)
	if before != nil && after != nil && !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return admission.NewForbidden(a, fmt.Errorf("spec: the client of local storage must not change the specification of claims"))
	}
	return nil
}

// check checks one object. object is nil if the request has none.
func (p *plugin) check(resource schema.GroupResource, object runtime.Object) error {
	if object == nil {
		return nil
	}
	unknown := fmt.Errorf("the driver of a %T is unknown", object)
	switch resource.Resource {
	case "persistentvolumes":
		pv, ok := object.(*corev1.PersistentVolume)
		if !ok {
			return unknown
		}
		return p.checkVolume(pv)
	case "csidrivers":
		driver, ok := object.(*storagev1.CSIDriver)
		if !ok {
			return unknown
		}
		return p.checkDriver("metadata.name", driver.Name)
	case "volumesnapshotcontents":
		content, ok := object.(*unstructured.Unstructured)
		if !ok {
			return unknown
		}
		driver, _, _ := unstructured.NestedString(content.Object, "spec", "driver")
		return p.checkDriver("spec.driver", driver)
	}
	return nil
}

func (p *plugin) checkVolume(pv *corev1.PersistentVolume) error {
	source := pv.Spec.CSI
	if source == nil {
		return fmt.Errorf("spec: the client of local storage can only have volumes of the CSI driver %q", p.driver)
	}
	if err := p.checkDriver("spec.csi.driver", source.Driver); err != nil {
		return err
	}
	for field, secret := range map[string]*corev1.SecretReference{
		"controllerPublishSecretRef": source.ControllerPublishSecretRef, "controllerExpandSecretRef": source.ControllerExpandSecretRef,
		"nodeStageSecretRef": source.NodeStageSecretRef, "nodePublishSecretRef": source.NodePublishSecretRef, "nodeExpandSecretRef": source.NodeExpandSecretRef,
	} {
		if secret != nil {
			return fmt.Errorf("spec.csi.%s: the driver %q uses no secrets; remove the secret from the StorageClass", field, p.driver)
		}
	}
	return nil
}

func (p *plugin) checkDriver(field, driver string) error {
	if driver != p.driver {
		return fmt.Errorf("%s: %q is not the driver of local storage, %q", field, driver, p.driver)
	}
	return nil
}
