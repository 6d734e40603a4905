package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	appsclient "github.com/openshift/client-go/apps/clientset/versioned/typed/apps/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	kubeappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/test/bench/host"
)

const (
	// rollouts is the number of rollouts per kind in each round.
	rollouts = 10
	// settleTime is the pause between rollouts, during which the previous pods terminate.
	settleTime = 3 * time.Second
	appName    = "bench"
)

// apps contains the results of the application measurements. config and deployment contain the
// durations of rollouts of the same pods by a DeploymentConfig and by a Deployment. image contains
// the delays between an image change and the new ReplicationController. template contains the
// durations of template processing, and wake the durations of first requests to an idle service.
type apps struct {
	config, deployment    []time.Duration
	image, template, wake []time.Duration
}

// measureApps boots a separate cluster, measures it and removes it.
func measureApps(ctx context.Context, dir, program, oc string, rounds int) (result *apps, err error) {
	h, err := host.New(filepath.Join(dir, "apps"), "/slipway-bench-apps")
	if err != nil {
		return nil, err
	}
	var s side
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), host.CleanupTime)
		defer cancel()
		if s != nil {
			err = errors.Join(err, s.discard(ctx))
		}
		err = errors.Join(err, h.Remove(ctx))
	}()
	if s, err = newSlipway(h, program); err != nil {
		return nil, err
	}
	c, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	config, err := hostConfig(h, s.(*slipway).data("admin.kubeconfig"))
	if err != nil {
		return nil, err
	}
	w, err := newWorkshop(c, config, h, oc)
	if err != nil {
		return nil, err
	}
	return w.result, w.measure(ctx, rounds*rollouts)
}

// appFixture is the cluster in which applications are measured.
type appFixture struct {
	*cluster
	host   *host.Host
	oc     string // the program slipway
	admin  string // the administrator's kubeconfig
	apps   appsclient.AppsV1Interface
	images imageclient.ImageV1Interface
	result *apps
}

func newWorkshop(c *cluster, config *rest.Config, h *host.Host, oc string) (*appFixture, error) {
	configs, err := appsclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	images, err := imageclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	admin := h.Path("data", "admin.kubeconfig")
	return &appFixture{c, h, oc, admin, configs, images, &apps{}}, nil
}

func (w *appFixture) measure(ctx context.Context, times int) error {
	if err := w.begin(ctx); err != nil {
		return fmt.Errorf("make applications: %w", err)
	}
	for i := range times {
		for _, tt := range []struct {
			roll func(context.Context, int) (time.Duration, error)
			took *[]time.Duration
		}{{w.rollConfig, &w.result.config}, {w.rollDeployment, &w.result.deployment}} {
			took, err := tt.roll(ctx, i+1)
			if err != nil {
				return fmt.Errorf("roll out: %w", err)
			}
			*tt.took = append(*tt.took, took)
			// Wait until the previous pods are deleted.
			if err := host.Pause(ctx, settleTime); err != nil {
				return err
			}
		}
	}
	if err := w.measureImages(ctx); err != nil {
		return fmt.Errorf("change images: %w", err)
	}
	if err := w.measureTemplate(ctx); err != nil {
		return fmt.Errorf("process template: %w", err)
	}
	if err := w.measureWakes(ctx); err != nil {
		return fmt.Errorf("wake service: %w", err)
	}
	return nil
}

// podTemplate returns the pod template for the DeploymentConfig and the Deployment. An environment
// variable contains the version, so that each version's template is different.
func podTemplate(name string, version int) corev1.PodTemplateSpec {
	pod := pausePod(name)
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "VERSION", Value: fmt.Sprint(version)}}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}
}

const configName, deploymentName = appName + "-dc", appName + "-deployment"

// begin creates the DeploymentConfig and the Deployment, and waits until their rollouts are
// complete.
func (w *appFixture) begin(ctx context.Context) error {
	template := podTemplate(configName, 0)
	dc := &appsv1.DeploymentConfig{
		ObjectMeta: metav1.ObjectMeta{Name: configName},
		Spec:       appsv1.DeploymentConfigSpec{Replicas: 1, Selector: template.Labels, Template: &template},
	}
	if _, err := w.apps.DeploymentConfigs("default").Create(ctx, dc, metav1.CreateOptions{}); err != nil {
		return err
	}
	same := podTemplate(deploymentName, 0)
	deployment := &kubeappsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: deploymentName},
		Spec:       kubeappsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: same.Labels}, Template: same},
	}
	if _, err := w.client.AppsV1().Deployments("default").Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return err
	}
	return poll(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		dc, err := w.apps.DeploymentConfigs("default").Get(ctx, configName, metav1.GetOptions{})
		if err != nil || !configDone(dc) {
			return false, err
		}
		deployment, err := w.client.AppsV1().Deployments("default").Get(ctx, deploymentName, metav1.GetOptions{})
		return err == nil && deploymentDone(deployment), err
	})
}

// configDone reports whether the rollout of the current version is complete, according to the same
// rule as `oc rollout status`.
func configDone(dc *appsv1.DeploymentConfig) bool {
	for _, condition := range dc.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Reason == string(appsv1.NewReplicationControllerAvailableReason) {
			return dc.Status.ObservedGeneration >= dc.Generation && dc.Status.UpdatedReplicas == dc.Spec.Replicas && dc.Status.Replicas == dc.Spec.Replicas
		}
	}
	return false
}

// deploymentDone works like configDone but for a Deployment.
func deploymentDone(d *kubeappsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == *d.Spec.Replicas && s.Replicas == *d.Spec.Replicas && s.AvailableReplicas == *d.Spec.Replicas
}

// rollConfig measures the time from the template change to the end of the rollout.
func (w *appFixture) rollConfig(ctx context.Context, version int) (time.Duration, error) {
	configs := w.apps.DeploymentConfigs("default")
	before, err := configs.Get(ctx, configName, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if _, err := configs.Patch(ctx, configName, types.StrategicMergePatchType, newVersion(version), metav1.PatchOptions{}); err != nil {
		return 0, err
	}
	err = poll(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		dc, err := configs.Get(ctx, configName, metav1.GetOptions{})
		return err == nil && dc.Status.LatestVersion > before.Status.LatestVersion && configDone(dc), err
	})
	return time.Since(start), err
}

// rollDeployment works like rollConfig but for the Deployment.
func (w *appFixture) rollDeployment(ctx context.Context, version int) (time.Duration, error) {
	deployments := w.client.AppsV1().Deployments("default")
	start := time.Now()
	if _, err := deployments.Patch(ctx, deploymentName, types.StrategicMergePatchType, newVersion(version), metav1.PatchOptions{}); err != nil {
		return 0, err
	}
	err := poll(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		d, err := deployments.Get(ctx, deploymentName, metav1.GetOptions{})
		return err == nil && deploymentDone(d), err
	})
	return time.Since(start), err
}

// newVersion returns a patch that changes the template.
func newVersion(version int) []byte {
	return fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"pause","env":[{"name":"VERSION","value":"%d"}]}]}}}}`, version)
}
