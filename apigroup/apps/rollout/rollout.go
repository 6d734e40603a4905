// Package rollout says how the deployments of a DeploymentConfig are written down: each is a ReplicationController whose annotations
// hold the version, the configuration that it was made from and how far it has come. Controllers, deployer pods, the API server and
// the client read and write them through this package, which does nothing itself.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.7.2 Deployments; the names are those of OpenShift 3.11.
package rollout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Names that github.com/openshift/api does not have.
const (
	// ConfigLabel and DeploymentLabel are on the pods of a deployment, and in its selector: the names of the configuration and of the
	// ReplicationController.
	ConfigLabel, DeploymentLabel = "deploymentconfig", "deployment"
	// DeploymentAnnotation is on pods of a deployment, its deployer and its hooks: the name of the ReplicationController.
	DeploymentAnnotation = "openshift.io/deployment.name"
	// DesiredAnnotation is how many pods the deployment is to have when it is complete.
	DesiredAnnotation = "kubectl.kubernetes.io/desired-replicas"
	// OriginalAnnotation is how many pods the previous deployment had when the next one began to replace it.
	OriginalAnnotation = "kubectl.kubernetes.io/original-replicas"
	// ImageLabel is on the nodes that have the image of deployer pods, as they do some seconds after their first start: deployer pods wait for it.
	ImageLabel = "slipway.openshift.io/deployer-image"
	// PodTypeLabel tells the pods of hooks apart: hook-pre, hook-mid, hook-post.
	PodTypeLabel = "openshift.io/deployer-pod.type"
	// When the deployer pod was made, ran and ended, on the ReplicationController.
	CreatedAnnotation   = "openshift.io/deployer-pod.created-at"
	StartedAnnotation   = "openshift.io/deployer-pod.started-at"
	CompletedAnnotation = "openshift.io/deployer-pod.completed-at"
	// NameVariable and NamespaceVariable tell deployers and hooks which ReplicationController they are for.
	NameVariable, NamespaceVariable = "OPENSHIFT_DEPLOYMENT_NAME", "OPENSHIFT_DEPLOYMENT_NAMESPACE"
	// TokenVariable and AuthorityVariable have the API token of deployers and the certificates by which they know the API server, where no volume has them.
	TokenVariable, AuthorityVariable = "SLIPWAY_DEPLOYER_TOKEN", "SLIPWAY_DEPLOYER_CA"
)

// Reasons of a deployment's failure, as clients of OpenShift 3 know them.
const (
	CancelledByUser  = "cancelled by the user"
	CancelledByNewer = "newer deployment was found running"
	UnrelatedPod     = "unrelated pod with the same name exists"
	DeployerGone     = "deployer pod no longer exists"
)

// Name is what the deployment of a version is called.
func Name(dc string, version int64) string { return fmt.Sprintf("%s-%d", dc, version) }

// DeployerName is what a deployment's deployer pod is called.
func DeployerName(deployment string) string { return deployment + "-deploy" }

// Selector selects the deployments of a configuration.
func Selector(dc string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{appsv1.DeploymentConfigAnnotation: dc})
}

// DeployerSelector selects the pods that deploy: the deployer and its hooks.
func DeployerSelector(deployment string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{appsv1.DeployerPodForDeploymentLabel: deployment})
}

// ConfigOf is the name of the configuration that a deployment belongs to, empty for other ReplicationControllers.
func ConfigOf(rc *corev1.ReplicationController) string {
	return rc.Annotations[appsv1.DeploymentConfigAnnotation]
}

// Version is the number of a deployment, 0 for other ReplicationControllers.
func Version(rc *corev1.ReplicationController) int64 {
	version, _ := strconv.ParseInt(rc.Annotations[appsv1.DeploymentVersionAnnotation], 10, 64) // 0 is none
	return version
}

// Phase is how far a deployment has come.
func Phase(rc *corev1.ReplicationController) appsv1.DeploymentStatus {
	return cmp.Or(appsv1.DeploymentStatus(rc.Annotations[appsv1.DeploymentStatusAnnotation]), appsv1.DeploymentStatusNew)
}

// Ended says whether a deployment is complete or has failed.
func Ended(rc *corev1.ReplicationController) bool {
	phase := Phase(rc)
	return phase == appsv1.DeploymentStatusComplete || phase == appsv1.DeploymentStatusFailed
}

// Complete writes down that a deployment was complete at a time. The deployer does when it is done, so that nobody waits for the end of its pod to
// be noticed; what other images do is known by the end of their pods.
func Complete(rc *corev1.ReplicationController, at time.Time) {
	metav1.SetMetaDataAnnotation(&rc.ObjectMeta, appsv1.DeploymentStatusAnnotation, string(appsv1.DeploymentStatusComplete))
	metav1.SetMetaDataAnnotation(&rc.ObjectMeta, CompletedAnnotation, at.UTC().Format(time.RFC3339))
	delete(rc.Annotations, DesiredAnnotation)
}

// Fail writes down that a deployment had failed at a time, as its deployer does for the same reason. It may be tried again: how many pods it is to have stays.
func Fail(rc *corev1.ReplicationController, at time.Time) {
	metav1.SetMetaDataAnnotation(&rc.ObjectMeta, appsv1.DeploymentStatusAnnotation, string(appsv1.DeploymentStatusFailed))
	metav1.SetMetaDataAnnotation(&rc.ObjectMeta, CompletedAnnotation, at.UTC().Format(time.RFC3339))
}

// Cancelled says whether somebody wants a deployment to stop.
func Cancelled(rc *corev1.ReplicationController) bool {
	return rc.Annotations[appsv1.DeploymentCancelledAnnotation] == "true"
}

// Desired is how many pods a deployment is to have when it is complete.
func Desired(rc *corev1.ReplicationController) (int32, error) {
	desired, err := strconv.ParseInt(rc.Annotations[DesiredAnnotation], 10, 32)
	if err != nil || desired < 0 {
		return 0, fmt.Errorf("read annotation %s of deployment %q: %q is no number of pods", DesiredAnnotation, rc.Name, rc.Annotations[DesiredAnnotation])
	}
	return int32(desired), nil
}

// Config is the configuration that a deployment was made from.
func Config(rc *corev1.ReplicationController) (*appsv1.DeploymentConfig, error) {
	dc := &appsv1.DeploymentConfig{}
	if err := json.Unmarshal([]byte(rc.Annotations[appsv1.DeploymentEncodedConfigAnnotation]), dc); err != nil {
		return nil, fmt.Errorf("read configuration of deployment %q: %w", rc.Name, err)
	}
	return dc, nil
}

// Newest sorts deployments, the newest one first.
func Newest(deployments []*corev1.ReplicationController) {
	slices.SortFunc(deployments, func(a, b *corev1.ReplicationController) int { return cmp.Compare(Version(b), Version(a)) })
}

// Active is the newest complete deployment of those that are sorted: its pods serve. It is nil where there is none.
func Active(newestFirst []*corev1.ReplicationController) *corev1.ReplicationController {
	i := slices.IndexFunc(newestFirst, func(rc *corev1.ReplicationController) bool { return Phase(rc) == appsv1.DeploymentStatusComplete })
	if i < 0 {
		return nil
	}
	return newestFirst[i]
}

// HasTrigger says whether a configuration has a trigger of a type.
func HasTrigger(dc *appsv1.DeploymentConfig, of appsv1.DeploymentTriggerType) bool {
	return slices.ContainsFunc(dc.Spec.Triggers, func(t appsv1.DeploymentTriggerPolicy) bool { return t.Type == of })
}

// Owns says whether a pod is a deployer or a hook of a deployment. The name and the labels of a pod prove nothing: an
// earlier deployment may have had the same name, and a user chooses both.
func Owns(rc *corev1.ReplicationController, pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == rc.UID })
}

// Owner is the reference by which what a configuration owns is removed with it.
func Owner(dc *appsv1.DeploymentConfig) metav1.OwnerReference {
	return *metav1.NewControllerRef(dc, appsv1.GroupVersion.WithKind("DeploymentConfig"))
}
