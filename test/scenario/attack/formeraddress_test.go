package attack

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestTenantCannotReachFormerAddressOfPod tries to keep a terminated pod's address in a service's
// endpoints and in the pod's status. One of Alice's pods can get this address next.
func TestTenantCannotReachFormerAddressOfPod(t *testing.T) {
	s := tenants(t)
	pods, services := kit.CorePath(s.evil, "pods"), kit.CorePath(s.evil, "services")
	pod := func(name, script string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {app: %[1]s}}, spec: {restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [%s]}}", name, container(script))
	}
	s.mallory.May("POST", services, "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}")
	s.mallory.May("POST", pods, pod("web", "exec sleep infinity"))
	s.mallory.May("POST", pods, pod("job", "true"))

	endpoints := func(ctx context.Context) (count int, err error) {
		slices, err := s.Client.DiscoveryV1().EndpointSlices(s.evil).List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, err
		}
		for i := range slices.Items {
			count += len(slices.Items[i].Endpoints)
		}
		return count, nil
	}
	s.WaitFor("an endpoint of the service", func(ctx context.Context) error {
		count, err := endpoints(ctx)
		if err == nil && count != 1 {
			err = fmt.Errorf("it has %d", count)
		}
		return err
	})
	s.mallory.MayNot("PATCH", kit.CorePath(s.evil, "endpoints/web"), `{"metadata":{"labels":{"endpoints.kubernetes.io/managed-by":null}}}`, "cannot be changed")
	s.mallory.May("PATCH", services+"/web", `{"spec":{"selector":null}}`)
	s.WaitFor("the deletion of the endpoints of a service without a selector", func(ctx context.Context) error {
		count, err := endpoints(ctx)
		if err == nil && count != 0 {
			err = fmt.Errorf("it has %d", count)
		}
		return err
	})

	s.WaitFor("the end of the pod", func(ctx context.Context) error {
		pod, err := s.Client.CoreV1().Pods(s.evil).Get(ctx, "job", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodSucceeded {
			err = fmt.Errorf("its phase is %s", pod.Status.Phase)
		}
		return err
	})
	s.mallory.MayNot("GET", pods+"/job:80/proxy/", "", "the pod has ended")
}
