package scc

import (
	"slices"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (r *resolved) checkVolumes(spec *corev1.PodSpec, at *field.Path) (errs field.ErrorList) {
	for i := range spec.Volumes {
		kind := volumeType(&spec.Volumes[i])
		switch {
		case !r.allowsVolume(kind):
			errs = append(errs, field.Invalid(at.Index(i), string(kind), string(kind)+" volumes are not allowed to be used"))
		case kind == securityv1.FSTypeFlexVolume && !r.allowsDriver(spec.Volumes[i].FlexVolume.Driver):
			errs = append(errs, field.Invalid(at.Index(i).Child("flexVolume", "driver"), spec.Volumes[i].FlexVolume.Driver,
				"FlexVolume driver is not allowed to be used"))
		}
	}
	return errs
}

// allowsVolume reports whether the constraint allows a volume type. For host directories, only
// allowHostDirVolumePlugin is considered.
func (r *resolved) allowsVolume(kind securityv1.FSType) bool {
	if kind == securityv1.FSTypeHostPath {
		return r.AllowHostDirVolumePlugin
	}
	return slices.Contains(r.Volumes, securityv1.FSTypeAll) || slices.Contains(r.Volumes, kind)
}

// allowsDriver reports whether the constraint allows a FlexVolume driver. A constraint without a
// list allows all drivers.
func (r *resolved) allowsDriver(driver string) bool {
	return len(r.AllowedFlexVolumes) == 0 || slices.ContainsFunc(r.AllowedFlexVolumes, func(allowed securityv1.AllowedFlexVolume) bool {
		return allowed.Driver == driver
	})
}

// volumeType returns a volume's type, as used in constraints. A volume with the service account's
// API token has the type of a secret: OpenShift 3 mounted the token as a secret, whereas Kubernetes
// uses a projected volume.
func volumeType(volume *corev1.Volume) securityv1.FSType {
	if volume.Projected != nil {
		if isTokenVolume(volume.Projected) {
			return securityv1.FSTypeSecret
		}
		return securityv1.FSProjected
	}
	for _, source := range volumeSources(&volume.VolumeSource) {
		if source.set {
			return source.kind
		}
	}
	return securityv1.FSTypeEmptyDir // a volume without a source is an emptyDir
}

type volumeSource struct {
	set  bool
	kind securityv1.FSType
}

func volumeSources(v *corev1.VolumeSource) []volumeSource {
	return []volumeSource{
		{v.HostPath != nil, securityv1.FSTypeHostPath},
		{v.EmptyDir != nil, securityv1.FSTypeEmptyDir},
		{v.Secret != nil, securityv1.FSTypeSecret},
		{v.ConfigMap != nil, securityv1.FSTypeConfigMap},
		{v.DownwardAPI != nil, securityv1.FSTypeDownwardAPI},
		{v.PersistentVolumeClaim != nil, securityv1.FSTypePersistentVolumeClaim},
		{v.FlexVolume != nil, securityv1.FSTypeFlexVolume},
		{v.NFS != nil, securityv1.FSTypeNFS},
		{v.ISCSI != nil, securityv1.FSTypeISCSI},
		{v.CSI != nil, securityv1.FSTypeCSI},
		{v.Ephemeral != nil, securityv1.FSTypeEphemeral},
		{v.Image != nil, securityv1.FSTypeImage},
		{v.GitRepo != nil, securityv1.FSTypeGitRepo},
		{v.GCEPersistentDisk != nil, securityv1.FSTypeGCEPersistentDisk},
		{v.AWSElasticBlockStore != nil, securityv1.FSTypeAWSElasticBlockStore},
		{v.Glusterfs != nil, securityv1.FSTypeGlusterfs},
		{v.RBD != nil, securityv1.FSTypeRBD},
		{v.Cinder != nil, securityv1.FSTypeCinder},
		{v.CephFS != nil, securityv1.FSTypeCephFS},
		{v.Flocker != nil, securityv1.FSTypeFlocker},
		{v.FC != nil, securityv1.FSTypeFC},
		{v.AzureFile != nil, securityv1.FSTypeAzureFile},
		{v.AzureDisk != nil, securityv1.FSTypeAzureDisk},
		{v.VsphereVolume != nil, securityv1.FSTypeVsphereVolume},
		{v.Quobyte != nil, securityv1.FSTypeQuobyte},
		{v.PhotonPersistentDisk != nil, securityv1.FSTypePhotonPersistentDisk},
		{v.PortworxVolume != nil, securityv1.FSPortworxVolume},
		{v.ScaleIO != nil, securityv1.FSScaleIO},
		{v.StorageOS != nil, securityv1.FSStorageOS},
	}
}

// isTokenVolume reports whether a volume was added by the API server's ServiceAccount plugin, which
// adds a token volume to every pod. The volume contains a token for the API server, the cluster's
// CA bundle and the name of the namespace.
func isTokenVolume(projected *corev1.ProjectedVolumeSource) bool {
	token := false
	for _, source := range projected.Sources {
		switch {
		case source.ServiceAccountToken != nil && source.ServiceAccountToken.Audience == "":
			token = true
		case source.ConfigMap != nil && source.ConfigMap.Name == "kube-root-ca.crt":
		case source.DownwardAPI != nil && len(source.DownwardAPI.Items) == 1 && source.DownwardAPI.Items[0].FieldRef != nil &&
			source.DownwardAPI.Items[0].FieldRef.FieldPath == "metadata.namespace":
		default:
			return false
		}
	}
	return token
}

// volumeTypes returns all types that a constraint can list, except `*` and `none`, sorted by name.
func volumeTypes() []securityv1.FSType {
	kinds := []securityv1.FSType{securityv1.FSProjected}
	for _, source := range volumeSources(&corev1.VolumeSource{}) {
		kinds = append(kinds, source.kind)
	}
	slices.Sort(kinds)
	return kinds
}
