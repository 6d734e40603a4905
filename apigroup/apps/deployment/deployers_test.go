package deployment

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// TestDeployerPodHasDeadlineForQuotas checks the pod against a quota that applies to pods with a
// deadline and requires resource requests for each container. The strategy sets the requests and
// the deadline for its deployer.
func TestDeployerPodHasDeadlineForQuotas(t *testing.T) {
	resources := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}, Limits: corev1.ResourceList{"memory": resource.MustParse("64Mi")},
	}
	rc := &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{}}}
	config := &appsv1.DeploymentConfig{Spec: appsv1.DeploymentConfigSpec{Strategy: appsv1.DeploymentStrategy{
		Resources: resources, ActiveDeadlineSeconds: ptr.To[int64](600),
	}}}
	pod := (&deployerController{Controllers: &Controllers{}}).pod(rc, config)
	if diff := cmp.Diff(resources, pod.Spec.Containers[0].Resources); diff != "" || len(pod.Spec.Containers) != 1 {
		t.Errorf("%d containers; resources (-want +got):\n%s", len(pod.Spec.Containers), diff)
	}
	if ptr.Deref(pod.Spec.ActiveDeadlineSeconds, 0) != 600 {
		t.Errorf("the deadline of the deployer is %v", pod.Spec.ActiveDeadlineSeconds)
	}
}

// TestDeployerOfEarlierAttemptIsIgnored retries a failed deployment while its old deployer pod
// still occupies the name of the new pod.
func TestDeployerOfEarlierAttemptIsIgnored(t *testing.T) {
	dc := configuration(1)
	rc := deployed(t, dc, appsv1.DeploymentStatusNew)
	ending := podOf(rc, "-deploy", corev1.PodRunning)
	ending.DeletionTimestamp, ending.Finalizers = ptr.To(metav1.Now()), []string{"test"}
	l := newLoops(t, dc, []*corev1.ReplicationController{rc}, ending)
	if err := l.deployer.reconcile(t.Context(), key("web-1")); err == nil {
		t.Error("the deployment is not requeued")
	}
	if got := rollout.Phase(l.deployment(t, "web-1")); got != appsv1.DeploymentStatusNew {
		t.Errorf("with a terminating deployer, the deployment is %s", got)
	}

	// The cache can still contain the deleted pod.
	rc = deployed(t, dc, appsv1.DeploymentStatusRunning)
	running := podOf(rc, "-deploy", corev1.PodRunning)
	l = newLoops(t, dc, []*corev1.ReplicationController{rc}, running)
	l.deployer.pods = corelisters.NewPodLister(indexer(t, podOf(rc, "-deploy", corev1.PodFailed)))
	if err := l.deployer.reconcile(t.Context(), key("web-1")); err != nil {
		t.Fatal(err)
	}
	if got := rollout.Phase(l.deployment(t, "web-1")); got != appsv1.DeploymentStatusRunning {
		t.Errorf("with the failed deployer of an earlier attempt in the cache, the deployment is %s", got)
	}
}

// full is a client that rejects all new pods because a quota is exceeded.
type full struct {
	coreclient.PodsGetter
	coreclient.PodInterface
}

func (f full) Pods(string) coreclient.PodInterface { return f }

func (full) Create(context.Context, *corev1.Pod, metav1.CreateOptions) (*corev1.Pod, error) {
	return nil, apierrors.NewForbidden(corev1.Resource("pods"), "web-1-deploy", errors.New("exceeded quota: small"))
}

func TestRejectedDeployerPodIsReported(t *testing.T) {
	dc := configuration(1)
	l := newLoops(t, dc, []*corev1.ReplicationController{deployed(t, dc, appsv1.DeploymentStatusNew)})
	creator, recorder := l.deployer.creator, record.NewFakeRecorder(10)
	l.deployer.creator, l.deployer.events = full{}, recorder
	if err := l.deployer.reconcile(t.Context(), key("web-1")); err == nil {
		t.Fatal("the deployment is not retried")
	}
	if got := <-recorder.Events; !strings.HasPrefix(got, "Warning FailedCreate Error creating deployer pod: ") || !strings.Contains(got, "exceeded quota: small") {
		t.Errorf("the event is %q", got)
	}
	failure := func() *appsv1.DeploymentCondition {
		status := status(dc, []*corev1.ReplicationController{l.deployment(t, "web-1")}, nil)
		for i := range status.Conditions {
			if status.Conditions[i].Type == appsv1.DeploymentReplicaFailure {
				return &status.Conditions[i]
			}
		}
		return nil
	}
	if got := failure(); got == nil || got.Reason != "FailedCreate" || !strings.Contains(got.Message, "exceeded quota: small") {
		t.Errorf("the condition is %+v", got)
	}
	l.deployer.creator = creator
	if err := l.deployer.reconcile(t.Context(), key("web-1")); err != nil {
		t.Fatal(err)
	}
	if got := failure(); got != nil || rollout.Phase(l.deployment(t, "web-1")) != appsv1.DeploymentStatusPending {
		t.Errorf("after the quota was raised, the condition is %+v", got)
	}
}
