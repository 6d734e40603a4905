// Package storageclient restricts the local storage driver's client to the driver's own objects.
//
// RBAC cannot distinguish between PersistentVolumes. Without this plugin, anyone with the client's
// key could create a PersistentVolume for any directory on any node, or a PersistentVolume that
// refers to any secret. They could also cause the garbage collector to delete any claim by setting
// an owner reference to an object that does not exist.
package storageclient

import (
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/apiserver"
)

// Name is the name of the admission plugin in the configuration.
const Name = "slipway.io/StorageClient"

// Limits defines the changes that the clients of a CSI driver are allowed to make.
type Limits struct {
	// Group is the clients' group, and Driver is the name of their driver.
	Group, Driver string
	// ClaimFinalizers and ClaimAnnotations are the only claim metadata that the clients are allowed
	// to change. SnapshotFinalizers are the only VolumeSnapshot metadata that they are allowed to
	// change.
	ClaimFinalizers, ClaimAnnotations, SnapshotFinalizers []string
	// CapacityNamespace is the namespace of the clients' CSIStorageCapacity objects.
	CapacityNamespace string
}

// Feature returns the feature that adds the admission plugin to the API server.
func Feature(limits Limits) apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(io.Reader) (admission.Interface, error) { return newPlugin(limits), nil },
	}}}
}

type plugin struct {
	*admission.Handler
	Limits
	kube    kubernetes.Interface
	dynamic dynamic.Interface
}

var (
	_ admission.ValidationInterface          = &plugin{}
	_ initializer.WantsExternalKubeClientSet = &plugin{}
	_ initializer.WantsDynamicClient         = &plugin{}
)

func newPlugin(limits Limits) *plugin {
	return &plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), Limits: limits}
}

// SetExternalKubeClientSet stores the client that reads classes, claims and volumes.
func (p *plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.kube = client }

// SetDynamicClient stores the client that reads VolumeSnapshotClasses and VolumeSnapshotContents.
func (p *plugin) SetDynamicClient(client dynamic.Interface) { p.dynamic = client }

// ValidateInitialization returns an error if a client is missing.
func (p *plugin) ValidateInitialization() error {
	if p.kube == nil || p.dynamic == nil {
		return fmt.Errorf("initialize admission plugin %s: no client", Name)
	}
	return nil
}

// Validate rejects requests for other drivers' objects. It also rejects changes to users' objects,
// except the changes that the driver makes.
func (p *plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !slices.Contains(a.GetUserInfo().GetGroups(), p.Group) {
		return nil
	}
	if err := p.validate(ctx, a); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

func (p *plugin) validate(ctx context.Context, a admission.Attributes) error {
	resource := a.GetResource().GroupResource()
	switch resource.Resource {
	case "persistentvolumeclaims":
		return p.checkClaim(ctx, a.GetOldObject(), a.GetObject())
	case "volumesnapshots":
		return p.checkSnapshot(ctx, a.GetOldObject(), a.GetObject())
	case "csistoragecapacities":
		return p.checkCapacity(a.GetNamespace())
	}
	for _, object := range []runtime.Object{a.GetOldObject(), a.GetObject()} {
		if err := p.check(resource, object); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error unless the driver owns an object. object is nil if the request does not
// contain an object.
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
		return fmt.Errorf("spec: the client of local storage can only use volumes of the CSI driver %q", p.Driver)
	}
	if err := p.checkDriver("spec.csi.driver", source.Driver); err != nil {
		return err
	}
	for field, secret := range map[string]*corev1.SecretReference{
		"controllerPublishSecretRef": source.ControllerPublishSecretRef, "controllerExpandSecretRef": source.ControllerExpandSecretRef,
		"nodeStageSecretRef": source.NodeStageSecretRef, "nodePublishSecretRef": source.NodePublishSecretRef, "nodeExpandSecretRef": source.NodeExpandSecretRef,
	} {
		if secret != nil {
			return fmt.Errorf("spec.csi.%s: the driver %q uses no secrets; remove the secret from the StorageClass", field, p.Driver)
		}
	}
	return nil
}

// checkCapacity accepts CSIStorageCapacity objects only in the clients' namespace, because the
// scheduler uses the capacities of all drivers to select nodes.
func (p *plugin) checkCapacity(namespace string) error {
	if namespace != p.CapacityNamespace {
		return fmt.Errorf("the client of local storage can only manage CSIStorageCapacities in namespace %q", p.CapacityNamespace)
	}
	return nil
}

func (p *plugin) checkDriver(field, driver string) error {
	if driver != p.Driver {
		return fmt.Errorf("%s: %q is not the driver of local storage, %q", field, driver, p.Driver)
	}
	return nil
}
