package storageclient

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

const ownFinalizer, ownAnnotation = "csi.slipway.io/provisioning", "volume.kubernetes.io/selected-node"

// limited returns a plugin for a cluster with storage classes and volumes of two drivers.
func limited(objects ...runtime.Object) *plugin {
	const other = "nfs.example.com"
	for name, provisioner := range map[string]string{"local": driver, "nfs": other} {
		pv := csiVolume(provisioner, nil)
		pv.Name = name + "-volume"
		objects = append(objects, pv, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner})
	}
	p := newPlugin(Limits{Group: group, Driver: driver, ClaimFinalizers: []string{ownFinalizer}, ClaimAnnotations: []string{ownAnnotation}, SnapshotFinalizers: []string{ownFinalizer}})
	p.SetExternalKubeClientSet(fake.NewClientset(objects...))
	return p
}

func claim(class, volumeName string, change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "name", Labels: map[string]string{"app": "front"}, Finalizers: []string{"kubernetes.io/pvc-protection", ownFinalizer},
			Annotations: map[string]string{"note": "of the user", ownAnnotation: "first"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To(class), VolumeName: volumeName},
	}
	if change != nil {
		change(claim)
	}
	return claim
}

func TestClientCanOnlyMakeChangesOfDriver(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   string
	}{
		"removes its finalizer and annotation": {func(c *corev1.PersistentVolumeClaim) {
			c.Finalizers, c.Annotations = c.Finalizers[:1], map[string]string{"note": "of the user"}
		}, ""},
		"selects another node":         {func(c *corev1.PersistentVolumeClaim) { c.Annotations[ownAnnotation] = "second" }, ""},
		"orders finalizers":            {func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{c.Finalizers[1], c.Finalizers[0]} }, ""},
		"writes the status":            {func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound }, ""},
		"sets an empty list of owners": {func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = []metav1.OwnerReference{} }, ""},
		"adds an owner that does not exist": {func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "missing", UID: "1"}}
		}, "metadata.ownerReferences"},
		"removes the protection finalizer": {func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{ownFinalizer} }, "metadata.finalizers"},
		"adds a finalizer":                 {func(c *corev1.PersistentVolumeClaim) { c.Finalizers = append(c.Finalizers, "example.com/forever") }, "metadata.finalizers"},
		"changes a label":                  {func(c *corev1.PersistentVolumeClaim) { c.Labels["app"] = "back" }, "metadata.labels"},
		"changes an annotation":            {func(c *corev1.PersistentVolumeClaim) { c.Annotations["note"] = "forged" }, "metadata.annotations"},
		"sets itself as the provisioner":   {func(c *corev1.PersistentVolumeClaim) { c.Annotations[provisionerAnnotations[0]] = driver }, "metadata.annotations"},
		"binds the claim":                  {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }, "must not change the spec"},
	} {
		t.Run(name, func(t *testing.T) {
			err := limited().Validate(t.Context(), attributes(group, "persistentvolumeclaims", admission.Update, claim("local", "", nil), claim("local", "", tt.change)), nil)
			expect(t, err, tt.want)
		})
	}
}

func TestClientCanOnlyChangeClaimsOfItsDriver(t *testing.T) {
	const foreign = "neither the StorageClass nor the volume"
	deleted := func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(metav1.Now()) }
	for name, tt := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  string
	}{
		"class of the driver": {claim("local", "", nil), ""},
		"class of the driver, bound to another driver's volume": {claim("local", "nfs-volume", nil), ""},
		"volume of the driver":                                  {claim("", "local-volume", nil), ""},
		"deleted class, provisioner annotation of the driver":   {claim("gone", "", func(c *corev1.PersistentVolumeClaim) { c.Annotations[provisionerAnnotations[1]] = driver }), ""},
		"class of another driver":                               {claim("nfs", "", nil), foreign},
		"volume of another driver":                              {claim("", "nfs-volume", nil), foreign},
		"no class":                                              {claim("", "", nil), foreign},
		"deleted class":                                         {claim("gone", "", nil), foreign},
		"deleted volume":                                        {claim("nfs", "gone", nil), foreign},
		"deleted volume, claim that is being deleted":           {claim("nfs", "gone", deleted), ""},
		"volume of another driver, claim that is being deleted": {claim("nfs", "nfs-volume", deleted), foreign},
		"provisioner annotation of another driver":              {claim("nfs", "", func(c *corev1.PersistentVolumeClaim) { c.Annotations[provisionerAnnotations[0]] = "nfs.example.com" }), foreign},
	} {
		t.Run(name, func(t *testing.T) {
			after := tt.claim.DeepCopy()
			after.Finalizers = after.Finalizers[:1]
			expect(t, limited().Validate(t.Context(), attributes(group, "persistentvolumeclaims", admission.Update, tt.claim, after), nil), tt.want)
		})
	}
	for _, operation := range []admission.Operation{admission.Create, admission.Delete} {
		var old, object runtime.Object = claim("local", "", nil), nil
		if operation == admission.Create {
			old, object = object, old
		}
		expect(t, limited().Validate(t.Context(), attributes(group, "persistentvolumeclaims", operation, old, object), nil), "can only update claims")
	}
}
