package attack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// pullFailure returns why the image of a pod of mallory's is not pulled.
func (s *stage) pullFailure(t *testing.T, pod, image string) (message string) {
	t.Helper()
	s.mallory.May("POST", kit.CorePath(s.evil, "pods"), fmt.Sprintf(
		`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: %q, imagePullPolicy: Always}]}}`, pod, image))
	evil := s.In(s.evil)
	evil.WaitFor("the failure to pull "+image, func(context.Context) error {
		for _, container := range evil.Pod(pod).Status.ContainerStatuses {
			// A later state, ImagePullBackOff, repeats the message.
			if waiting := container.State.Waiting; waiting != nil && strings.Contains(waiting.Reason, "Pull") && waiting.Message != "" {
				message = waiting.Message
				return nil
			}
		}
		return errors.New("there is none")
	})
	return message
}

func TestImageOfPodCannotReachHostAndCluster(t *testing.T) {
	s := tenants(t)
	addresses, requests := s.inside(t)
	_, port, _ := net.SplitHostPort(addresses[0])
	inside := addresses[0]
	redirect := s.distant(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+inside+r.URL.Path, http.StatusTemporaryRedirect)
	})
	addresses = append(addresses, "localhost:"+port, s.Address.String()+":8443", "169.254.169.254", "172.30.0.1:443", "10.128.0.1:80", redirect)
	for i, address := range addresses {
		message := s.pullFailure(t, fmt.Sprintf("pull-%d", i), address+"/team/app:v1")
		if strings.Contains(message, insideSecret) {
			t.Errorf("%s: the response comes back: %s", address, message)
		}
		// The server of the redirect speaks no TLS, which registries outside must.
		if address != redirect && !strings.Contains(message, "slipway.outbound") {
			t.Errorf("%s: the pod says %q", address, message)
		}
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("servers inside had %d requests", n)
	}
	if events := s.mallory.May("GET", kit.CorePath(s.evil, "events"), ""); strings.Contains(events, insideSecret) {
		t.Errorf("an event shows the response: %s", events)
	}
}
