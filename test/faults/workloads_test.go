package faults

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	appsclient "github.com/openshift/client-go/apps/clientset/versioned/typed/apps/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned/typed/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/test/kit"
)

// application is a BuildConfig and a DeploymentConfig that start only on request. The builder is a
// shell without input, which succeeds immediately.
const application = `
apiVersion: build.openshift.io/v1
kind: BuildConfig
metadata: {name: app}
spec:
  runPolicy: Parallel # one after another, builds would take longer than the requests
  successfulBuildsHistoryLimit: 1000
  failedBuildsHistoryLimit: 1000
  strategy: {customStrategy: {from: {kind: DockerImage, name: "` + kit.ToolsImage + `"}}}
---
apiVersion: apps.openshift.io/v1
kind: DeploymentConfig
metadata: {name: app}
spec:
  replicas: 1
  revisionHistoryLimit: 1000
  triggers: []
  strategy: {type: Recreate, recreateParams: {timeoutSeconds: 60}}
  selector: {app: app}
  template:
    metadata: {labels: {app: app}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: app, image: ` + kit.ToolsImage + `, command: [sleep, infinity]}]
`

// requestInterval is the interval at which a client requests a build and a rollout from each
// master.
const requestInterval = 10 * time.Second

// workloads starts builds and rollouts through all masters, and watches the resulting pods.
type workloads struct {
	stopRequests, stopWatches context.CancelFunc
	requests, watches         sync.WaitGroup

	mu sync.Mutex
	// acknowledged counts the acknowledged requests, keyed by the name of the build or of the
	// rollout's ReplicationController.
	acknowledged map[string]int
	// runs contains the containers of build pods and deployer pods, keyed by the name of the build
	// or ReplicationController. A container is identified by its pod's UID and its own ID, which is
	// empty until the container runs.
	runs map[string]map[run]bool
}

type run struct {
	pod       types.UID
	container string
}

func startWorkloads(t *testing.T, hosts map[string]*kit.Cluster) *workloads {
	t.Helper()
	hosts["first"].Apply(application)
	w := &workloads{acknowledged: map[string]int{}, runs: map[string]map[run]bool{}}
	var requests, watches context.Context
	requests, w.stopRequests = context.WithCancel(context.Background())
	watches, w.stopWatches = context.WithCancel(context.Background())
	for _, host := range hosts {
		pods := informers.NewSharedInformerFactoryWithOptions(host.Client, 0, informers.WithNamespace("default")).Core().V1().Pods().Informer()
		_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { w.see(object.(*corev1.Pod)) },
			UpdateFunc: func(_, object any) { w.see(object.(*corev1.Pod)) },
		})
		must(t, err)
		w.watches.Go(func() { pods.RunWithContext(watches) })
		w.requests.Go(func() { repeat(requests, func(ctx context.Context) { w.build(ctx, host.Config) }) })
		w.requests.Go(func() { repeat(requests, func(ctx context.Context) { w.rollOut(ctx, host.Config) }) })
	}
	return w
}

// repeat sends a request every requestInterval until ctx is done.
func repeat(ctx context.Context, request func(context.Context)) {
	ticker := time.NewTicker(requestInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		attempt, cancel := context.WithTimeout(ctx, requestInterval)
		request(attempt)
		cancel()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

func (w *workloads) build(ctx context.Context, master *rest.Config) {
	client, err := buildclient.NewForConfig(master)
	if err != nil {
		panic(err)
	}
	build, err := client.BuildConfigs("default").Instantiate(ctx, "app", &buildv1.BuildRequest{ObjectMeta: metav1.ObjectMeta{Name: "app"}}, metav1.CreateOptions{})
	if err == nil {
		w.acknowledge("build " + build.Name)
	}
}

func (w *workloads) rollOut(ctx context.Context, master *rest.Config) {
	client, err := appsclient.NewForConfig(master)
	if err != nil {
		panic(err)
	}
	// A rollout ends the previous rollout. The request fails if another master starts a rollout at
	// the same time.
	config, err := client.DeploymentConfigs("default").Instantiate(ctx, "app", &appsv1.DeploymentRequest{Name: "app", Latest: true, Force: true}, metav1.CreateOptions{})
	if err == nil {
		w.acknowledge(fmt.Sprintf("rollout app-%d", config.Status.LatestVersion))
	}
}

func (w *workloads) acknowledge(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acknowledged[name]++
}

// see records the containers of a build pod or deployer pod.
func (w *workloads) see(pod *corev1.Pod) {
	name := ""
	if build := pod.Labels[buildv1.BuildLabel]; build != "" {
		name = "build " + build
	} else if deployment := pod.Labels[appsv1.DeployerPodForDeploymentLabel]; deployment != "" {
		name = "rollout " + deployment
	}
	if name == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs[name] == nil {
		w.runs[name] = map[run]bool{}
	}
	w.runs[name][run{pod: pod.UID}] = true
	for _, status := range pod.Status.ContainerStatuses {
		if started(status.State) {
			w.runs[name][run{pod.UID, status.ContainerID}] = true
		}
	}
}

// started reports whether a container has run. The kubelet replaces a container that containerd has
// created but could not start, for example because containerd was killed.
func started(state corev1.ContainerState) bool {
	return state.Running != nil || state.Terminated != nil && state.Terminated.StartedAt.Unix() > 0
}

// rolloutVersion returns the version of a rollout, or 0 for a build.
func rolloutVersion(name string) int {
	version, _ := strconv.Atoi(strings.TrimPrefix(name, "rollout app-"))
	return version
}

// check waits until all acknowledged builds and rollouts have ended. It fails the test if one of
// them is lost, was acknowledged twice, or ran in two pods or containers. If a later rollout has
// ended, the controller need not have started the earlier one, as in OpenShift 3.11.
func (w *workloads) check(t *testing.T, hosts map[string]*kit.Cluster) {
	t.Helper()
	w.stopRequests()
	w.requests.Wait()
	first := hosts["first"]
	ended := map[string]string{}
	first.WaitFor("end of all builds and rollouts", func(ctx context.Context) (err error) {
		ended, err = w.ended(ctx, first)
		return err
	})
	w.stopWatches()
	w.watches.Wait()
	latest := 0
	for name := range ended {
		latest = max(latest, rolloutVersion(name))
	}
	outcomes := map[string]int{}
	for name, count := range w.acknowledged {
		outcome := ended[name]
		if version := rolloutVersion(name); outcome == "" && version > 0 && version < latest {
			outcome = "replaced"
		}
		if outcome == "" || count != 1 {
			t.Errorf("%s was acknowledged %d times and ended as %q", name, count, outcome)
		}
		kind, _, _ := strings.Cut(name, " ")
		outcomes[kind+" "+outcome]++
	}
	for name, runs := range w.runs {
		pods, containers := map[types.UID]bool{}, map[string]bool{}
		for r := range runs {
			pods[r.pod] = true
			if r.container != "" {
				containers[r.container] = true
			}
		}
		if len(pods) > 1 || len(containers) > 1 {
			t.Errorf("%s ran in %d pods and %d containers", name, len(pods), len(containers))
		}
	}
	t.Logf("%d builds and rollouts ran; results of acknowledged requests: %v", len(w.runs), outcomes)
}

// ended returns the phases of all builds and rollouts. It returns an error if one of them is still
// running.
func (w *workloads) ended(ctx context.Context, c *kit.Cluster) (map[string]string, error) {
	client, err := buildclient.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	phases := map[string]string{}
	builds, err := client.Builds("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, build := range builds.Items {
		phases["build "+build.Name] = string(build.Status.Phase)
	}
	deployments, err := c.Client.CoreV1().ReplicationControllers("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, deployment := range deployments.Items {
		phases["rollout "+deployment.Name] = deployment.Annotations[appsv1.DeploymentStatusAnnotation]
	}
	for name, phase := range phases {
		if !slices.Contains([]string{"Complete", "Failed", "Error", "Cancelled"}, phase) {
			return nil, fmt.Errorf("%s is %s", name, phase)
		}
	}
	return phases, nil
}
