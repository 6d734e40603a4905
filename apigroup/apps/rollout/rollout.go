// Package rollout defines how a DeploymentConfig's deployments are stored: each deployment is a
// ReplicationController with annotations for its version, configuration and phase. Controllers,
// deployer pods, the API server and the client share this package. It only transforms objects and
// sends no requests.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.7.2 Deployments; the names are the same
// as in OpenShift 3.11.
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

// Names that github.com/openshift/api does not define.
const (
	// ConfigLabel is the label of a deployment's pods, and part of its selector. Its value is the
	// name of the configuration.
	ConfigLabel = "deploymentconfig"
	// DeploymentLabel is a label of a deployment's pods, and part of its selector. Its value is the
	// name of the ReplicationController.
	DeploymentLabel = "deployment"
	// DeploymentAnnotation is the annotation of a deployment's pods, deployer pod and hook pods.
	// Its value is the name of the ReplicationController.
	DeploymentAnnotation = "openshift.io/deployment.name"
	// DesiredAnnotation contains the number of pods that the deployment has when it is complete.
	DesiredAnnotation = "kubectl.kubernetes.io/desired-replicas"
	// OriginalAnnotation contains the number of pods that a deployment had before the next
	// deployment started to replace them.
	OriginalAnnotation = "kubectl.kubernetes.io/original-replicas"
	// ImageLabel is the label of nodes that have the image of deployer pods. A new node does not
	// have the image for the first few seconds, so deployer pods are scheduled only to nodes with
	// the label.
	ImageLabel = "slipway.openshift.io/deployer-image"
	// PodTypeLabel is the label of a hook's pod. Its value is hook-pre, hook-mid or hook-post.
	PodTypeLabel = "openshift.io/deployer-pod.type"
	// Annotations of the ReplicationController that contain the times at which the deployer pod was
	// created, started and finished.
	CreatedAnnotation   = "openshift.io/deployer-pod.created-at"
	StartedAnnotation   = "openshift.io/deployer-pod.started-at"
	CompletedAnnotation = "openshift.io/deployer-pod.completed-at"
	// CreateErrorAnnotation contains the reason why the deployer pod of a new deployment cannot be
	// created.
	CreateErrorAnnotation = "openshift.io/deployer-pod.create-error"
	// NameVariable is the environment variable of deployers and hooks that contains the name of the
	// ReplicationController.
	NameVariable = "OPENSHIFT_DEPLOYMENT_NAME"
	// NamespaceVariable is the environment variable of deployers and hooks that contains the
	// namespace of the ReplicationController.
	NamespaceVariable = "OPENSHIFT_DEPLOYMENT_NAMESPACE"
	// TokenVariable is the environment variable of deployers that contains their API token, unless
	// a volume contains the token.
	TokenVariable = "SLIPWAY_DEPLOYER_TOKEN"
	// AuthorityVariable is the environment variable of deployers that contains the API server's CA
	// bundle, unless a volume contains the bundle.
	AuthorityVariable = "SLIPWAY_DEPLOYER_CA"
)

// Reasons why deployments fail, as in OpenShift 3.
const (
	CancelledByUser  = "cancelled by the user"
	CancelledByNewer = "newer deployment was found running"
	UnrelatedPod     = "unrelated pod with the same name exists"
	DeployerGone     = "deployer pod no longer exists"
)

// Name returns the name of the deployment for a configuration's version.
func Name(dc string, version int64) string { return fmt.Sprintf("%s-%d", dc, version) }

// DeployerName returns the name of a deployment's deployer pod.
func DeployerName(deployment string) string { return deployment + "-deploy" }

// Selector selects the deployments of a configuration.
func Selector(dc string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{appsv1.DeploymentConfigAnnotation: dc})
}

// DeployerSelector selects a deployment's deployer pod and hook pods.
func DeployerSelector(deployment string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{appsv1.DeployerPodForDeploymentLabel: deployment})
}

// ConfigOf returns the name of a deployment's configuration, or "" if the ReplicationController is
// not a deployment.
func ConfigOf(rc *corev1.ReplicationController) string {
	return rc.Annotations[appsv1.DeploymentConfigAnnotation]
}

// Version returns the version of a deployment, or 0 if the ReplicationController is not a
// deployment.
func Version(rc *corev1.ReplicationController) int64 {
	// If the annotation is missing, ParseInt returns 0.
	version, _ := strconv.ParseInt(rc.Annotations[appsv1.DeploymentVersionAnnotation], 10, 64)
	return version
}

// Phase returns the phase of a deployment.
func Phase(rc *corev1.ReplicationController) appsv1.DeploymentStatus {
	return cmp.Or(appsv1.DeploymentStatus(rc.Annotations[appsv1.DeploymentStatusAnnotation]), appsv1.DeploymentStatusNew)
}

// Ended reports whether a deployment is complete or has failed.
func Ended(rc *corev1.ReplicationController) bool {
	phase := Phase(rc)
	return phase == appsv1.DeploymentStatusComplete || phase == appsv1.DeploymentStatusFailed
}

// Complete marks a deployment as complete. Slipway's deployer does this when it has finished, so
// that clients do not have to wait until the deployer pod terminates. For other deployers, the
// controllers mark the deployment as complete when the pod terminates.
func Complete(rc *corev1.ReplicationController, at time.Time) {
	metav1.SetMetaDataAnnotation(&rc.ObjectMeta, appsv1.DeploymentStatusAnnotation, string(appsv1.DeploymentStatusComplete))
	metav1.SetMetaDataAnnotation(&rc.ObjectMeta, CompletedAnnotation, at.UTC().Format(time.RFC3339))
	delete(rc.Annotations, DesiredAnnotation)
}

// Fail marks a deployment as failed. It keeps the desired number of pods, so that the deployment
// can be retried.
func Fail(rc *corev1.ReplicationController, at time.Time) {
	metav1.SetMetaDataAnnotation(&rc.ObjectMeta, appsv1.DeploymentStatusAnnotation, string(appsv1.DeploymentStatusFailed))
	metav1.SetMetaDataAnnotation(&rc.ObjectMeta, CompletedAnnotation, at.UTC().Format(time.RFC3339))
}

// Cancelled reports whether a deployment has been canceled.
func Cancelled(rc *corev1.ReplicationController) bool {
	return rc.Annotations[appsv1.DeploymentCancelledAnnotation] == "true"
}

// CreateFailure returns the reason why a deployment's deployer pod or its other pods cannot be
// created, or "". The reason identifies the quota, limit or policy that rejects the pods.
func CreateFailure(rc *corev1.ReplicationController) string {
	if Phase(rc) == appsv1.DeploymentStatusNew {
		return rc.Annotations[CreateErrorAnnotation]
	}
	for _, condition := range rc.Status.Conditions {
		if condition.Type == corev1.ReplicationControllerReplicaFailure && condition.Status == corev1.ConditionTrue {
			return condition.Message
		}
	}
	return ""
}

// Desired returns the number of pods that a deployment has when it is complete.
func Desired(rc *corev1.ReplicationController) (int32, error) {
	desired, err := strconv.ParseInt(rc.Annotations[DesiredAnnotation], 10, 32)
	if err != nil || desired < 0 {
		return 0, fmt.Errorf("parse annotation %s of deployment %q: %q is not a number of pods", DesiredAnnotation, rc.Name, rc.Annotations[DesiredAnnotation])
	}
	return int32(desired), nil
}

// Config returns the configuration from which a deployment was created.
func Config(rc *corev1.ReplicationController) (*appsv1.DeploymentConfig, error) {
	dc := &appsv1.DeploymentConfig{}
	if err := json.Unmarshal([]byte(rc.Annotations[appsv1.DeploymentEncodedConfigAnnotation]), dc); err != nil {
		return nil, fmt.Errorf("parse configuration of deployment %q: %w", rc.Name, err)
	}
	return dc, nil
}

// Newest sorts deployments from newest to oldest.
func Newest(deployments []*corev1.ReplicationController) {
	slices.SortFunc(deployments, func(a, b *corev1.ReplicationController) int { return cmp.Compare(Version(b), Version(a)) })
}

// Active returns the newest complete deployment, or nil. Its pods run the application.
func Active(newestFirst []*corev1.ReplicationController) *corev1.ReplicationController {
	i := slices.IndexFunc(newestFirst, func(rc *corev1.ReplicationController) bool { return Phase(rc) == appsv1.DeploymentStatusComplete })
	if i < 0 {
		return nil
	}
	return newestFirst[i]
}

// HasTrigger reports whether a configuration has a trigger of the given type.
func HasTrigger(dc *appsv1.DeploymentConfig, of appsv1.DeploymentTriggerType) bool {
	return slices.ContainsFunc(dc.Spec.Triggers, func(t appsv1.DeploymentTriggerPolicy) bool { return t.Type == of })
}

// Owns reports whether a pod is the deployer pod or a hook pod of a deployment. It compares UIDs
// instead of names and labels, because an earlier deployment might have had the same name, and
// users can set names and labels.
func Owns(rc *corev1.ReplicationController, pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == rc.UID })
}

// Owner returns the owner reference for objects that are deleted together with a configuration.
func Owner(dc *appsv1.DeploymentConfig) metav1.OwnerReference {
	return *metav1.NewControllerRef(dc, appsv1.GroupVersion.WithKind("DeploymentConfig"))
}
