package attack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// createPod creates a pod as a user. Its image exists, but its command does not, so it never runs.
func (s *stage) createPod(user *kit.User, project, pod, image string, policy corev1.PullPolicy) {
	user.May("POST", kit.CorePath(project, "pods"), fmt.Sprintf(
		`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: %q, imagePullPolicy: %s, command: [/none]}]}}`,
		pod, image, policy))
}

// imageDecision waits until the kubelet has allowed or rejected the image of a pod's container. It
// returns the container's state after the decision.
func (s *stage) imageDecision(project, pod string) (reason string, status corev1.ContainerStatus) {
	cluster := s.In(project)
	cluster.WaitFor("the image of "+pod, func(context.Context) error {
		statuses := cluster.Pod(pod).Status.ContainerStatuses
		if len(statuses) == 0 {
			return errors.New("the container has no status")
		}
		status = statuses[0]
		switch state := status.State; {
		case state.Waiting != nil && state.Waiting.Reason != "ContainerCreating":
			reason = state.Waiting.Reason
		case state.Terminated != nil:
			reason = state.Terminated.Reason
		case state.Running != nil:
			reason = "Running"
		default:
			return errors.New("the container is being created")
		}
		return nil
	})
	return reason, status
}

// isRefused reports whether a container's reason is an image error, such as ErrImagePull,
// ErrImageNeverPull or InvalidImageName.
func isRefused(reason string) bool { return strings.Contains(reason, "Image") }

func TestImageOfOtherProjectOnNodeCannotRun(t *testing.T) {
	s := tenants(t)
	s.waitBuilder(t, s.shop)
	image := noise(t, 10<<10)
	if err := s.push(t, s.shop, "app:latest", image); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	id, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	repository := "docker-registry.default.svc:5000/" + s.shop + "/app"
	s.WaitFor("the pull secret of the owner's pod", func(ctx context.Context) error {
		account, err := s.Client.CoreV1().ServiceAccounts(s.shop).Get(ctx, "default", metav1.GetOptions{})
		if err == nil && len(account.ImagePullSecrets) == 0 {
			err = errors.New("the account has no pull secret")
		}
		return err
	})
	s.createPod(s.alice, s.shop, "own", repository+":latest", corev1.PullIfNotPresent)
	s.WaitFor("the owner's pod to get the image", func(context.Context) error {
		reason, status := s.imageDecision(s.shop, "own")
		if isRefused(reason) || !strings.Contains(status.ImageID, digest.String()) && !strings.Contains(status.ImageID, id.String()) {
			return fmt.Errorf("%s, %+v", reason, status)
		}
		return nil
	})
	names := []string{
		repository + ":latest", repository + "@" + digest.String(), id.String(), "sha256:" + id.Hex[:12], id.Hex, repository,
		"docker-registry.default.svc:5000/" + s.evil + "/app@" + digest.String(),
	}
	tryAll := func(prefix string) {
		t.Helper()
		pods := map[string]string{}
		for i, name := range names {
			for _, policy := range []corev1.PullPolicy{corev1.PullIfNotPresent, corev1.PullNever} {
				pod := strings.ToLower(fmt.Sprintf("%s-%d-%s", prefix, i, policy))
				s.createPod(s.mallory, s.evil, pod, name, policy)
				pods[pod] = name
			}
		}
		for pod, name := range pods {
			if reason, status := s.imageDecision(s.evil, pod); !isRefused(reason) {
				t.Errorf("%s of pod %s: %s, %+v", name, pod, reason, status)
			}
		}
	}
	tryAll("recorded")
	// The kubelet can lose its records of image pulls. When it removes images to free space, it
	// loses the records of the images that are in use. When it is killed, it loses the records that
	// it has not yet written to disk.
	if err := os.RemoveAll(s.Path("kubelet", "image_manager")); err != nil {
		t.Fatal(err)
	}
	s.Kill("node")
	tryAll("unrecorded")
	s.createPod(s.alice, s.shop, "own-again", repository+":latest", corev1.PullIfNotPresent)
	s.WaitFor("the owner's pod to get the image again", func(context.Context) error {
		if reason, status := s.imageDecision(s.shop, "own-again"); isRefused(reason) {
			return fmt.Errorf("%s, %+v", reason, status)
		}
		return nil
	})
}

// TestPodCannotTakeImageOfHostFromOtherPods pulls one of the host's images under an OpenShift 3
// name. This makes the kubelet record that only this pod has pulled the image.
func TestPodCannotTakeImageOfHostFromOtherPods(t *testing.T) {
	s := tenants(t)
	s.createPod(s.mallory, s.evil, "taker", "registry.example.com/openshift3/ose-descheduler:v3.11", corev1.PullAlways)
	if reason, status := s.imageDecision(s.evil, "taker"); isRefused(reason) {
		t.Fatalf("%s, %+v", reason, status)
	}
	for _, policy := range []corev1.PullPolicy{corev1.PullIfNotPresent, corev1.PullNever} {
		pod := strings.ToLower("own-" + string(policy))
		s.createPod(s.alice, s.shop, pod, "localhost/slipway-descheduler:current", policy)
		if reason, status := s.imageDecision(s.shop, pod); isRefused(reason) {
			t.Errorf("policy %s: %s, %+v", policy, reason, status)
		}
	}
}
