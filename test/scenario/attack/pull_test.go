package attack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// pullFailure creates a pod with the image in Mallory's project, and returns the reason why the
// kubelet cannot pull the image.
func (s *stage) pullFailure(t *testing.T, pod, image string) (message string) {
	t.Helper()
	s.mallory.May("POST", kit.CorePath(s.evil, "pods"), fmt.Sprintf(
		`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: %q, imagePullPolicy: Always}]}}`, pod, image))
	evil := s.In(s.evil)
	evil.WaitFor("the failure to pull "+image, func(context.Context) error {
		for _, container := range evil.Pod(pod).Status.ContainerStatuses {
			// A later state, ImagePullBackOff, repeats the message of this state.
			if waiting := container.State.Waiting; waiting != nil && strings.Contains(waiting.Reason, "Pull") && waiting.Message != "" {
				message = waiting.Message
				return nil
			}
		}
		return errors.New("the pod has no failure yet")
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
			t.Errorf("%s: mallory gets the response: %s", address, message)
		}
		// The redirect fails for a different reason: its target does not use TLS, which is
		// mandatory for registries outside the cluster.
		if address != redirect && !strings.Contains(message, "slipway.outbound") {
			t.Errorf("%s: the pod prints %q", address, message)
		}
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("internal servers received %d requests", n)
	}
	if events := s.mallory.May("GET", kit.CorePath(s.evil, "events"), ""); strings.Contains(events, insideSecret) {
		t.Errorf("an event shows the response: %s", events)
	}
}

func TestSlowRegistryDoesNotDelayPodsOfOthers(t *testing.T) {
	s := tenants(t)
	s.waitBuilder(t, s.shop)
	if err := s.push(t, s.shop, "app:latest", noise(t, 10<<10)); err != nil {
		t.Fatal(err)
	}
	const name = "slow.example.com"
	requests, done := make(chan struct{}, 1), make(chan struct{})
	slow := s.distant(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
		if r.Method == http.MethodHead {
			return
		}
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		select {
		case requests <- struct{}{}:
		default:
		}
		select {
		case <-r.Context().Done():
		case <-done:
		}
	})
	t.Cleanup(func() { close(done) })
	dir := s.Path("registries.d", name)
	hosts := fmt.Sprintf("[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n", "http://"+slow)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(hosts), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for i := range 5 {
		s.mallory.May("POST", kit.CorePath(s.evil, "pods"), fmt.Sprintf(
			`{apiVersion: v1, kind: Pod, metadata: {name: slow-%d}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: "%s/app-%d:1"}]}}`, i, name, i))
	}
	<-requests
	s.createPod(s.alice, s.shop, "own", "docker-registry.default.svc:5000/"+s.shop+"/app:latest", corev1.PullAlways)
	reason, status := s.imageDecision(s.shop, "own")
	if strings.Contains(reason, "Image") {
		t.Errorf("a pod of another project: %s, %+v", reason, status)
	}
}
