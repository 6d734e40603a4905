package attack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// runImage creates a pod of a user with an image whose program does not exist, and returns the
// state of its container when kubelet has decided about the image.
func (s *stage) runImage(t *testing.T, user *kit.User, project, pod, image string, policy corev1.PullPolicy) (reason string, status corev1.ContainerStatus) {
	t.Helper()
	user.May("POST", kit.CorePath(project, "pods"), fmt.Sprintf(
		`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: %q, imagePullPolicy: %s, command: [/none]}]}}`,
		pod, image, policy))
	here := s.In(project)
	here.WaitFor("the image of "+pod, func(context.Context) error {
		statuses := here.Pod(pod).Status.ContainerStatuses
		if len(statuses) == 0 {
			return errors.New("there is no status")
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
	isRefused := func(reason string) bool {
		return strings.Contains(reason, "Pull") || strings.Contains(reason, "Image") // ErrImagePull, InvalidImageName, ...
	}
	reason, status := s.runImage(t, s.alice, s.shop, "own", repository+":latest", corev1.PullIfNotPresent)
	if isRefused(reason) || !strings.Contains(status.ImageID, digest.String()) && !strings.Contains(status.ImageID, id.String()) {
		t.Fatalf("the owner's pod: %s, %+v", reason, status)
	}
	for i, name := range []string{
		repository + ":latest", repository + "@" + digest.String(), id.String(), "sha256:" + id.Hex[:12], id.Hex,
		"docker-registry.default.svc:5000/" + s.evil + "/app@" + digest.String(),
	} {
		for _, policy := range []corev1.PullPolicy{corev1.PullIfNotPresent, corev1.PullNever} {
			pod := strings.ToLower(fmt.Sprintf("stored-%d-%s", i, policy))
			if reason, status := s.runImage(t, s.mallory, s.evil, pod, name, policy); !isRefused(reason) {
				t.Errorf("%s with %s: %s, %+v", name, policy, reason, status)
			}
		}
	}
}
