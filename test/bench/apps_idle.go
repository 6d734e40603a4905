package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/test/bench/host"
)

const (
	wakes      = 5
	idleName   = appName + "-idle"
	toolsImage = "localhost/slipway-tools:current"
	pagePort   = 8080
)

// measureWakes repeatedly idles a service and requests a page from it.
func (w *appFixture) measureWakes(ctx context.Context) error {
	pod := pausePod(idleName)
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: toolsImage, Command: []string{"httpd", "-f", "-p", fmt.Sprint(pagePort), "-h", "/etc"}}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}
	dc := &appsv1.DeploymentConfig{
		ObjectMeta: metav1.ObjectMeta{Name: idleName},
		Spec:       appsv1.DeploymentConfigSpec{Replicas: 1, Selector: template.Labels, Template: &template},
	}
	if _, err := w.apps.DeploymentConfigs("default").Create(ctx, dc, metav1.CreateOptions{}); err != nil {
		return err
	}
	service, err := w.client.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: idleName},
		Spec:       corev1.ServiceSpec{Selector: template.Labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(pagePort)}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for range wakes {
		if err := w.makeIdle(ctx); err != nil {
			return err
		}
		start := time.Now()
		if err := w.fetch(ctx, "http://"+service.Spec.ClusterIP+"/passwd"); err != nil {
			return err
		}
		w.result.wake = append(w.result.wake, time.Since(start))
	}
	return nil
}

// makeIdle waits until the service has its pod, idles the service, and waits until the pod is
// deleted.
func (w *appFixture) makeIdle(ctx context.Context) error {
	pods := func(want int) error {
		return poll(ctx, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
			list, err := w.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + idleName})
			if err != nil || len(list.Items) != want {
				return false, err
			}
			return want == 0 || list.Items[0].Status.Phase == corev1.PodRunning, nil
		})
	}
	if err := pods(1); err != nil {
		return err
	}
	if err := poll(ctx, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		dc, err := w.apps.DeploymentConfigs("default").Get(ctx, idleName, metav1.GetOptions{})
		return err == nil && configDone(dc) && dc.Status.AvailableReplicas == 1, err
	}); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, w.oc, "idle", idleName, "--kubeconfig", w.admin)
	command.Env = append(os.Environ(), "HOME="+w.host.Dir)
	err := w.host.Start(command)
	if err == nil {
		err = command.Wait()
	}
	if err != nil {
		return fmt.Errorf("oc idle: %w", err)
	}
	if err := pods(0); err != nil {
		return err
	}
	return host.Pause(ctx, time.Second) // Wait until the service proxy has received the change.
}

// fetch requests a page from inside the host's network namespace.
func (w *appFixture) fetch(ctx context.Context, address string) error {
	client := &http.Client{Transport: &http.Transport{DialContext: w.host.Dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", address, response.Status)
	}
	return nil
}
