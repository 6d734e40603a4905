package deployer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// site is a fake cluster with two deployments: web-1 has two pods, and web-2 has no pods yet. It
// scales ReplicationControllers immediately. The pods of web-1 terminate when the deployer waits
// for them to terminate.
type site struct {
	client *fake.Clientset
	out    bytes.Buffer
	// hooks maps the name of a hook to the final phase of the hook's pod. The default is Succeeded.
	hooks map[string]corev1.PodPhase
	// onHook is called when a hook starts.
	onHook func(name string)
	// kill terminates the deployer.
	kill func()
	// stuck means that the pods of web-1 never terminate. broken means that the pods of web-2 never
	// become available.
	stuck, broken bool

	// journal records the deployer's actions.
	journal []string
	// failures is the number of requests after which the deployer is killed, or negative if the
	// deployer is not killed.
	failures atomic.Int64
}

func (s *site) note(format string, values ...any) {
	s.journal = append(s.journal, fmt.Sprintf(format, values...))
}

func newSite(t *testing.T, strategy appsv1.DeploymentStrategy) *site {
	t.Helper()
	dc := &appsv1.DeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	dc.Spec.Replicas, dc.Spec.Strategy, dc.Spec.Selector = 2, strategy, map[string]string{"app": "web"}
	dc.Spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}}}
	var objects []runtime.Object
	for version := range int64(2) {
		dc.Status.LatestVersion = version + 1
		rc, err := rollout.New(dc)
		if err != nil {
			t.Fatal(err)
		}
		if version == 0 {
			rc.Spec.Replicas, rc.Status.Replicas, rc.Status.AvailableReplicas = ptr.To[int32](2), 2, 2
			rc.Annotations[appsv1.DeploymentStatusAnnotation] = string(appsv1.DeploymentStatusComplete)
		}
		objects = append(objects, rc)
	}
	for _, name := range []string{"web-1-a", "web-1-b"} {
		objects = append(objects, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{rollout.ConfigLabel: "web", rollout.DeploymentLabel: "web-1"}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning},
		})
	}
	s := &site{client: fake.NewClientset(objects...), hooks: map[string]corev1.PodPhase{}, onHook: func(string) {}}
	s.client.PrependReactor("update", "replicationcontrollers", s.scale)
	s.client.PrependReactor("create", "pods", s.hook)
	s.client.PrependWatchReactor("pods", s.end)
	s.failures.Store(-1)
	s.client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return s.dead(), nil, errKilled })
	s.client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) { return s.dead(), nil, errKilled })
	return s
}

// errKilled is the error that all requests of a killed deployer return.
var errKilled = errors.New("killed")

// dead counts a request, and reports whether the deployer is killed before the request.
func (s *site) dead() bool {
	if s.failures.Load() < 0 {
		return false
	}
	if s.failures.Load() == 0 {
		s.kill()
		return true
	}
	s.failures.Add(-1)
	return false
}

// scale creates the pods that the updated ReplicationController requires.
func (s *site) scale(action clienttesting.Action) (bool, runtime.Object, error) {
	rc := action.(clienttesting.UpdateAction).GetObject().(*corev1.ReplicationController)
	desired := *rc.Spec.Replicas
	if desired == rc.Status.Replicas { // only an annotation has changed
		return false, nil, nil
	}
	rc.Status.Replicas, rc.Status.AvailableReplicas = desired, desired
	if rc.Name == "web-2" && s.broken {
		rc.Status.AvailableReplicas = 0
	}
	rest := ""
	if pods := s.old(); rc.Name == "web-2" && pods > 0 {
		rest = fmt.Sprintf(" with %d old pods", pods)
	}
	s.note("%s %d%s", rc.Name, desired, rest)
	return false, nil, nil
}

// old returns the number of web-1's pods.
func (s *site) old() (count int) {
	list, err := s.client.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod"), "shop")
	if err != nil {
		return -1
	}
	for _, pod := range list.(*corev1.PodList).Items {
		if pod.Labels[rollout.DeploymentLabel] == "web-1" {
			count++
		}
	}
	return count
}

// hook reacts to the creation of a hook's pod: it sets the pod's final phase and calls onHook.
func (s *site) hook(action clienttesting.Action) (bool, runtime.Object, error) {
	pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
	name := strings.TrimPrefix(pod.Labels[rollout.PodTypeLabel], "hook-")
	pod.Status.Phase = corev1.PodSucceeded
	if phase := s.hooks[name]; phase != "" {
		pod.Status.Phase = phase
	}
	if _, err := s.client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), "shop", pod.Name); err == nil {
		return false, nil, nil // the tracker rejects the duplicate
	}
	s.note("%s hook", name)
	s.onHook(name)
	return false, nil, nil
}

// end deletes web-1's pods if web-1 has been scaled to zero. The fake client calls it when the
// deployer starts to watch pods.
func (s *site) end(clienttesting.Action) (bool, watch.Interface, error) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	client, err := s.client.Tracker().Watch(pods, "shop")
	if err == nil && !s.stuck && slices.Contains(s.journal, "web-1 0") {
		for _, name := range []string{"web-1-a", "web-1-b"} {
			_ = s.client.Tracker().Delete(pods, "shop", name) // the pod might be deleted already
		}
	}
	return true, client, err
}

func (s *site) deploy(ctx context.Context) error {
	tags := imagefake.NewSimpleClientset().ImageV1()
	return (&Deployer{Core: s.client.CoreV1(), Tags: tags, Namespace: "shop", Deployment: "web-2", Out: &s.out}).Run(ctx)
}

func (s *site) deployment(t *testing.T, name string) *corev1.ReplicationController {
	t.Helper()
	rc, err := s.client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("replicationcontrollers"), "shop", name)
	if err != nil {
		t.Fatal(err)
	}
	return rc.(*corev1.ReplicationController)
}

// annotate changes an annotation of a deployment while the deployer runs.
func (s *site) annotate(t *testing.T, name, annotation, value string) {
	t.Helper()
	rc := s.deployment(t, name).DeepCopy()
	metav1.SetMetaDataAnnotation(&rc.ObjectMeta, annotation, value)
	if err := s.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("replicationcontrollers"), rc, "shop"); err != nil {
		t.Fatal(err)
	}
}
