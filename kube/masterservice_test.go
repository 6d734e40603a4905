package kube

import (
	"fmt"
	"net"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"
)

// created returns the service as upstream creates it.
func created() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
		Spec: corev1.ServiceSpec{
			SessionAffinity: corev1.ServiceAffinityNone,
			Ports:           []corev1.ServicePort{{Name: "https", Protocol: corev1.ProtocolTCP, Port: 443}},
		},
	}
}

func TestMasterServiceHasPortsOfDNSServers(t *testing.T) {
	client := fake.NewClientset(created())
	for dnsPort, want := range map[int32]string{8053: "https 443, dns 53 to 8053, dns-tcp 53 to 8053, ClientIP", 0: "https 443, ClientIP"} {
		masterService{dnsPort}.maintain(t.Context(), client)
		service, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, port := range service.Spec.Ports {
			got += fmt.Sprint(port.Name, " ", port.Port)
			if port.Name != "https" {
				got += " to " + port.TargetPort.String()
			}
			got += ", "
		}
		if got += string(service.Spec.SessionAffinity); got != want {
			t.Errorf("with port %d: got %s, want %s", dnsPort, got, want)
		}
	}
}

func TestMasterServiceIsWrittenOnce(t *testing.T) {
	service := created()
	if m := (masterService{8053}); !m.shape(service) || m.shape(service) {
		t.Error("a second call changes the service")
	}
}

// recorded is a reconciler that records the ports it receives.
type recorded struct {
	reconcilers.EndpointReconciler
	ports []corev1.EndpointPort
	check bool
}

func (r *recorded) ReconcileEndpoints(_ string, _ net.IP, ports []corev1.EndpointPort, check bool) error {
	r.ports, r.check = ports, check
	return nil
}

func TestMasterEndpointsHaveDNSPorts(t *testing.T) {
	var inner recorded
	e := endpoints{&inner, masterService{8053}}
	if err := e.ReconcileEndpoints("kubernetes", nil, []corev1.EndpointPort{{Name: "https", Port: 8443}}, false); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, port := range inner.ports {
		got = append(got, fmt.Sprint(port.Name, " ", port.Port))
	}
	if slices.Sort(got); !slices.Equal(got, []string{"dns 8053", "dns-tcp 8053", "https 8443"}) || !inner.check {
		t.Errorf("got %q, checked: %t", got, inner.check)
	}
}
