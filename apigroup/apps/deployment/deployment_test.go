package deployment

import (
	"slices"
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	appsfake "github.com/openshift/client-go/apps/clientset/versioned/fake"
	appslisters "github.com/openshift/client-go/apps/listers/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/controller"
)

// loops holds the configuration controller and the deployer controller, with caches that contain a
// test's objects.
type loops struct {
	config   *configController
	deployer *deployerController
	core     coreclient.CoreV1Interface
}

// indexer returns a cache that contains objects.
func indexer[T runtime.Object](t *testing.T, objects ...T) cache.Indexer {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, object := range objects {
		if err := indexer.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return indexer
}

func newLoops(t *testing.T, dc *appsv1.DeploymentConfig, deployments []*corev1.ReplicationController, pods ...*corev1.Pod) loops {
	t.Helper()
	var objects []runtime.Object
	for _, rc := range deployments {
		objects = append(objects, rc.DeepCopy())
	}
	for _, pod := range pods {
		objects = append(objects, pod.DeepCopy())
	}
	core := fake.NewClientset(objects...).CoreV1()
	apps := appsfake.NewSimpleClientset(dc.DeepCopy()).AppsV1()
	lister := corelisters.NewReplicationControllerLister(indexer(t, deployments...))
	return loops{
		&configController{core, apps, appslisters.NewDeploymentConfigLister(indexer(t, dc)), lister, record.NewFakeRecorder(10)},
		&deployerController{&Controllers{Image: "deployer:1", CustomImage: "tools:1"}, core, core, lister, corelisters.NewPodLister(indexer(t, pods...)), record.NewFakeRecorder(10)}, core,
	}
}

// configuration returns a configuration whose latest version is version.
func configuration(version int64) *appsv1.DeploymentConfig {
	dc := &appsv1.DeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid"}}
	dc.Spec.Replicas, dc.Status.LatestVersion = 2, version
	dc.Spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}}}
	return dc
}

// deployed returns the deployment of a configuration's latest version. The deployment is in the
// given phase.
func deployed(t *testing.T, dc *appsv1.DeploymentConfig, phase appsv1.DeploymentStatus) *corev1.ReplicationController {
	t.Helper()
	rc, err := rollout.New(dc)
	if err != nil {
		t.Fatal(err)
	}
	rc.UID, rc.Annotations[appsv1.DeploymentStatusAnnotation] = "web-uid", string(phase)
	return rc
}

// podOf returns a deployment's deployer pod or one of its hook pods.
func podOf(rc *corev1.ReplicationController, suffix string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: rc.Namespace, Name: rc.Name + suffix, Labels: map[string]string{appsv1.DeployerPodForDeploymentLabel: rc.Name},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ReplicationController", Name: rc.Name, UID: rc.UID}},
	}, Status: corev1.PodStatus{Phase: phase}}
}

func key(name string) controller.Key { return controller.Key{Namespace: "shop", Name: name} }

func (l loops) deployment(t *testing.T, name string) *corev1.ReplicationController {
	t.Helper()
	rc, err := l.core.ReplicationControllers("shop").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return rc
}

func TestPodOfCustomStrategy(t *testing.T) {
	for name, tt := range map[string]struct {
		params  *appsv1.CustomDeploymentStrategyParams
		image   string
		command []string
	}{
		"none":    {nil, "deployer:1", nil},
		"image":   {&appsv1.CustomDeploymentStrategyParams{Image: "mine:1", Environment: []corev1.EnvVar{{Name: "A", Value: "1"}}}, "mine:1", nil},
		"both":    {&appsv1.CustomDeploymentStrategyParams{Image: "mine:1", Command: []string{"run"}}, "mine:1", []string{"run"}},
		"command": {&appsv1.CustomDeploymentStrategyParams{Command: []string{"run"}}, "tools:1", []string{"run"}},
	} {
		dc := configuration(1)
		dc.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.DeploymentStrategyTypeCustom, CustomParams: tt.params}
		l := newLoops(t, dc, []*corev1.ReplicationController{deployed(t, dc, appsv1.DeploymentStatusNew)})
		if err := l.deployer.reconcile(t.Context(), key("web-1")); err != nil {
			t.Fatal(err)
		}
		pod, err := l.core.Pods("shop").Get(t.Context(), "web-1-deploy", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		container := pod.Spec.Containers[0]
		if container.Image != tt.image || !slices.Equal(container.Command, tt.command) || pod.Spec.ServiceAccountName != "deployer" {
			t.Errorf("%s: the pod is %+v", name, pod.Spec)
		}
		want := []corev1.EnvVar{{Name: rollout.NameVariable, Value: "web-1"}, {Name: rollout.NamespaceVariable, Value: "shop"}}
		if tt.params != nil {
			want = append(slices.Clone(tt.params.Environment), want...)
		}
		if !slices.Equal(container.Env, want) {
			t.Errorf("%s: variables are %v", name, container.Env)
		}
		if phase := rollout.Phase(l.deployment(t, "web-1")); phase != appsv1.DeploymentStatusPending {
			t.Errorf("%s: the deployment is %s", name, phase)
		}
	}
}

func TestCanceledDeploymentIsStopped(t *testing.T) {
	dc := configuration(1)
	for _, phase := range []appsv1.DeploymentStatus{appsv1.DeploymentStatusNew, appsv1.DeploymentStatusRunning} {
		rc := deployed(t, dc, phase)
		rc.Annotations[appsv1.DeploymentCancelledAnnotation], rc.Annotations[appsv1.DeploymentStatusReasonAnnotation] = "true", rollout.CancelledByUser
		var pods []*corev1.Pod
		if phase == appsv1.DeploymentStatusRunning {
			pods = []*corev1.Pod{podOf(rc, "-deploy", corev1.PodRunning), podOf(rc, "-hook-mid", corev1.PodRunning), podOf(rc, "-hook-pre", corev1.PodSucceeded)}
		}
		l := newLoops(t, dc, []*corev1.ReplicationController{rc}, pods...)
		if err := l.deployer.reconcile(t.Context(), key("web-1")); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]int64{"web-1-deploy": stopDeadlineSeconds, "web-1-hook-mid": stopDeadlineSeconds, "web-1-hook-pre": 0} {
			pod, err := l.core.Pods("shop").Get(t.Context(), name, metav1.GetOptions{})
			if phase == appsv1.DeploymentStatusNew {
				if !apierrors.IsNotFound(err) {
					t.Errorf("a deployment that never started has pod %+v, %v", pod, err)
				}
				continue
			}
			if err != nil || ptr.Deref(pod.Spec.ActiveDeadlineSeconds, 0) != want {
				t.Errorf("pod %s is %+v, %v", name, pod, err)
			}
		}
		want := appsv1.DeploymentStatusRunning // the phase changes only when the pod has terminated
		if phase == appsv1.DeploymentStatusNew {
			want = appsv1.DeploymentStatusFailed
		}
		if got := l.deployment(t, "web-1"); rollout.Phase(got) != want || got.Annotations[appsv1.DeploymentStatusReasonAnnotation] != rollout.CancelledByUser {
			t.Errorf("a canceled deployment that was %s has %v", phase, got.Annotations)
		}
	}
}

func TestFailedDeploymentCanBeRetried(t *testing.T) {
	dc := configuration(1)
	for phase, again := range map[appsv1.DeploymentStatus]bool{appsv1.DeploymentStatusFailed: false, appsv1.DeploymentStatusNew: true} {
		l := newLoops(t, dc, []*corev1.ReplicationController{deployed(t, dc, phase)})
		if err := l.deployer.reconcile(t.Context(), key("web-1")); err != nil {
			t.Fatal(err)
		}
		if _, err := l.core.Pods("shop").Get(t.Context(), "web-1-deploy", metav1.GetOptions{}); (err == nil) != again {
			t.Errorf("a deployment that is %s has a deployer: %v", phase, err)
		}
	}
}

func TestPausedConfigurationDoesNotDeploy(t *testing.T) {
	for _, paused := range []bool{true, false} {
		dc := configuration(1)
		dc.Spec.Paused = paused
		l := newLoops(t, dc, nil)
		if err := l.config.reconcile(t.Context(), key("web")); err != nil {
			t.Fatal(err)
		}
		if _, err := l.core.ReplicationControllers("shop").Get(t.Context(), "web-1", metav1.GetOptions{}); apierrors.IsNotFound(err) != paused {
			t.Errorf("paused %v: the deployment: %v", paused, err)
		}
		got, err := l.config.apps.DeploymentConfigs("shop").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		says := slices.ContainsFunc(got.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Reason == string(appsv1.DeploymentConfigPausedReason)
		})
		if says != paused {
			t.Errorf("paused %v: conditions are %+v", paused, got.Status.Conditions)
		}
	}
}

func TestCompletedTestDeploymentIsScaledToZero(t *testing.T) {
	for _, tt := range []struct {
		test  bool
		phase appsv1.DeploymentStatus
		want  int32
	}{
		{true, appsv1.DeploymentStatusRunning, 1}, {true, appsv1.DeploymentStatusComplete, 0}, {false, appsv1.DeploymentStatusComplete, 2}, {true, appsv1.DeploymentStatusFailed, 0},
	} {
		dc := configuration(1)
		dc.Spec.Test = tt.test
		rc := deployed(t, dc, tt.phase)
		rc.Spec.Replicas = ptr.To[int32](1)
		l := newLoops(t, dc, []*corev1.ReplicationController{rc})
		if err := l.config.reconcile(t.Context(), key("web")); err != nil {
			t.Fatal(err)
		}
		if got := *l.deployment(t, "web-1").Spec.Replicas; got != tt.want {
			t.Errorf("test %v, %s: %d pods, want %d", tt.test, tt.phase, got, tt.want)
		}
	}
}

func TestFirstPodsStartWithDeployer(t *testing.T) {
	share := intstr.FromInt32(1)
	rolling := appsv1.DeploymentStrategy{Type: appsv1.DeploymentStrategyTypeRolling, RollingParams: &appsv1.RollingDeploymentStrategyParams{MaxSurge: &share, MaxUnavailable: &share}}
	for name, tt := range map[string]struct {
		strategy     appsv1.DeploymentStrategy
		before, want int32
	}{
		"rolling": {rolling, 0, 1},
		"rolling, already scaled by its deployer": {rolling, 2, 2},
		"another": {appsv1.DeploymentStrategy{Type: appsv1.DeploymentStrategyTypeRecreate}, 0, 0},
	} {
		dc := configuration(1)
		dc.Spec.Strategy = tt.strategy
		old := deployed(t, dc, appsv1.DeploymentStatusComplete)
		old.Spec.Replicas = ptr.To[int32](2)
		dc.Status.LatestVersion = 2
		rc := deployed(t, dc, appsv1.DeploymentStatusNew)
		rc.Spec.Replicas = &tt.before
		l := newLoops(t, dc, []*corev1.ReplicationController{old, rc})
		if err := l.deployer.reconcile(t.Context(), key("web-2")); err != nil {
			t.Fatal(err)
		}
		if got := l.deployment(t, "web-2"); *got.Spec.Replicas != tt.want || rollout.Phase(got) != appsv1.DeploymentStatusPending {
			t.Errorf("%s: the deployment is %s with %d pods, want %d", name, rollout.Phase(got), *got.Spec.Replicas, tt.want)
		}
	}
}

func TestCompletedDeploymentStaysComplete(t *testing.T) {
	dc := configuration(1)
	for status, phase := range map[appsv1.DeploymentStatus]corev1.PodPhase{
		appsv1.DeploymentStatusPending: corev1.PodRunning, appsv1.DeploymentStatusRunning: corev1.PodFailed, appsv1.DeploymentStatusNew: corev1.PodRunning,
	} {
		stale := deployed(t, dc, status)
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
		pod.Namespace, pod.Name, pod.OwnerReferences = "shop", "web-1-deploy", []metav1.OwnerReference{{UID: stale.UID}}
		l := newLoops(t, dc, []*corev1.ReplicationController{stale}, pod)
		complete := deployed(t, dc, appsv1.DeploymentStatusComplete)
		if _, err := l.core.ReplicationControllers("shop").Update(t.Context(), complete, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := l.deployer.reconcile(t.Context(), key("web-1")); err != nil {
			t.Fatal(err)
		}
		if got := l.deployment(t, "web-1"); rollout.Phase(got) != appsv1.DeploymentStatusComplete {
			t.Errorf("the phase is %s after a reconcile with cached phase %s and deployer pod phase %s", rollout.Phase(got), status, phase)
		}
	}
}
