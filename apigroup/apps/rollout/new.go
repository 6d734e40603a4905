package rollout

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// New returns the deployment of a configuration's latest version. The deployment initially has no
// replicas; the deployer scales it up.
func New(dc *appsv1.DeploymentConfig) (*corev1.ReplicationController, error) {
	encoded := dc.DeepCopy()
	encoded.SetGroupVersionKind(appsv1.GroupVersion.WithKind("DeploymentConfig"))
	encoded.ManagedFields = nil
	text, err := json.Marshal(encoded)
	if err != nil {
		return nil, fmt.Errorf("encode configuration %q: %w", dc.Name, err)
	}
	version := strconv.FormatInt(dc.Status.LatestVersion, 10)
	name := Name(dc.Name, dc.Status.LatestVersion)
	labels := map[string]string{ConfigLabel: dc.Name, DeploymentLabel: name}
	template := dc.Spec.Template.DeepCopy()
	template.Labels = mergeMaps(template.Labels, labels)
	template.Annotations = mergeMaps(template.Annotations, map[string]string{
		DeploymentAnnotation: name, appsv1.DeploymentConfigAnnotation: dc.Name, appsv1.DeploymentVersionAnnotation: version,
	})
	desired := dc.Spec.Replicas
	annotations := map[string]string{
		appsv1.DeploymentConfigAnnotation:        dc.Name,
		appsv1.DeploymentEncodedConfigAnnotation: string(text),
		appsv1.DeploymentStatusAnnotation:        string(appsv1.DeploymentStatusNew),
		appsv1.DeploymentVersionAnnotation:       version,
		DesiredAnnotation:                        strconv.Itoa(int(desired)),
	}
	if reason := Message(dc.Status.Details); reason != "" {
		annotations[appsv1.DeploymentStatusReasonAnnotation] = reason
	}
	return &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: dc.Namespace, Name: name,
			Labels:          mergeMaps(dc.Labels, map[string]string{appsv1.DeploymentConfigAnnotation: dc.Name}),
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{Owner(dc)},
		},
		Spec: corev1.ReplicationControllerSpec{
			Replicas: ptr.To[int32](0), MinReadySeconds: dc.Spec.MinReadySeconds,
			Selector: mergeMaps(dc.Spec.Selector, labels), Template: template,
		},
	}, nil
}

// Message returns the cause of a deployment in OpenShift 3's wording.
func Message(details *appsv1.DeploymentDetails) string {
	switch {
	case details == nil:
		return ""
	case details.Message != "":
		return details.Message
	}
	for _, cause := range details.Causes {
		switch cause.Type {
		case appsv1.DeploymentTriggerOnConfigChange:
			return "config change"
		case appsv1.DeploymentTriggerOnImageChange:
			return "image change"
		}
	}
	return ""
}

// mergeMaps returns a map with the entries of all maps. Later maps take precedence over earlier
// maps.
func mergeMaps(all ...map[string]string) map[string]string {
	result := map[string]string{}
	for _, item := range all {
		maps.Copy(result, item)
	}
	return result
}
