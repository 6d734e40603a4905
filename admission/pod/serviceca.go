package pod

import (
	"context"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
)

// ServiceAuthority is the name of the plugin that adds the service CA to pods.
const ServiceAuthority = "openshift.io/ServiceAuthority"

// AuthorityFeature returns an admission plugin that adds a file to the volume that contains a pod's
// service account token. The file contains the value of a ConfigMap key and is named after the key.
// In OpenShift 3, this file was in the token's secret, which was mounted at the same path. If the
// namespace does not have the ConfigMap yet, the pod starts without the file.
func AuthorityFeature(configMap, key string) apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{{
		// The plugin must run after ServiceAccount, which adds the volume. ServiceAccount precedes
		// NodeRestriction in the plugin order.
		Name: ServiceAuthority, Before: "NodeRestriction",
		New: func(io.Reader) (admission.Interface, error) {
			return &authority{admission.NewHandler(admission.Create), configMap, key}, nil
		},
	}}}
}

type authority struct {
	*admission.Handler
	configMap, key string
}

var _ admission.MutationInterface = &authority{}

// accessVolume is the name prefix of the token volumes that Kubernetes adds to pods.
const accessVolume = "kube-api-access-"

// Admit adds the file to the pod's token volumes.
func (p *authority) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil || !strings.HasPrefix(volume.Name, accessVolume) || slices.ContainsFunc(volume.Projected.Sources, p.isOurs) {
			continue
		}
		volume.Projected.Sources = append(volume.Projected.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: p.configMap},
			Items:                []corev1.KeyToPath{{Key: p.key, Path: p.key}},
			Optional:             new(true),
		}})
	}
	return nil
}

func (p *authority) isOurs(source corev1.VolumeProjection) bool {
	return source.ConfigMap != nil && source.ConfigMap.Name == p.configMap
}
