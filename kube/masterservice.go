package kube

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	endpointsv1 "k8s.io/kubernetes/pkg/api/v1/endpoints"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"
)

// masterService configures the `kubernetes` service as in OpenShift 3. The service's port 53
// forwards to the masters' DNS servers, and session affinity keeps a client on the same master.
// Kubernetes creates the service and maintains its endpoints.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, 4.1.
type masterService struct {
	// dnsPort is the port of each master's DNS server, or 0 if the masters have none.
	dnsPort int32
}

// protocols returns the DNS server's protocols with the names of its ports.
func (masterService) protocols() []corev1.ServicePort {
	return []corev1.ServicePort{{Name: "dns", Protocol: corev1.ProtocolUDP}, {Name: "dns-tcp", Protocol: corev1.ProtocolTCP}}
}

// endpoints adds the DNS server's ports to the service's endpoints.
type endpoints struct {
	reconcilers.EndpointReconciler
	service masterService
}

// ReconcileEndpoints implements reconcilers.EndpointReconciler. It always passes true as the last
// argument, because upstream would otherwise keep obsolete ports.
func (e endpoints) ReconcileEndpoints(service string, ip net.IP, ports []corev1.EndpointPort, _ bool) error {
	return e.EndpointReconciler.ReconcileEndpoints(service, ip, e.add(ports), true)
}

// RemoveEndpoints implements reconcilers.EndpointReconciler.
func (e endpoints) RemoveEndpoints(service string, ip net.IP, ports []corev1.EndpointPort) error {
	return e.EndpointReconciler.RemoveEndpoints(service, ip, e.add(ports))
}

// add returns ports together with the DNS server's ports, in upstream's order.
func (e endpoints) add(ports []corev1.EndpointPort) []corev1.EndpointPort {
	if e.service.dnsPort == 0 {
		return ports
	}
	all := slices.Clone(ports)
	for _, port := range e.service.protocols() {
		all = append(all, corev1.EndpointPort{Name: port.Name, Protocol: port.Protocol, Port: e.service.dnsPort})
	}
	subset := corev1.EndpointSubset{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}}, Ports: all}
	return endpointsv1.RepackSubsets([]corev1.EndpointSubset{subset})[0].Ports
}

// maintain sets the ports and the session affinity of the service. Upstream creates the service
// when the API server is ready. maintain returns when the ports and the session affinity are
// correct, or when ctx is done.
func (m masterService) maintain(ctx context.Context, client kubernetes.Interface) {
	services, failure := client.CoreV1().Services(metav1.NamespaceDefault), ""
	_ = wait.PollUntilContextCancel(ctx, time.Second/5, true, func(ctx context.Context) (bool, error) {
		service, err := services.Get(ctx, "kubernetes", metav1.GetOptions{})
		if err == nil && m.shape(service) {
			_, err = services.Update(ctx, service, metav1.UpdateOptions{})
		}
		if err != nil && err.Error() != failure {
			failure = err.Error()
			slog.Info("the service kubernetes has no port for DNS yet", "error", err)
		}
		return err == nil, nil
	})
}

// shape sets the service's ports and session affinity, and reports whether the service has changed.
func (m masterService) shape(service *corev1.Service) bool {
	before := service.Spec.DeepCopy()
	service.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	ports := service.Spec.Ports[:0:0]
	for _, port := range before.Ports {
		if port.Name == "https" {
			ports = append(ports, port)
		}
	}
	for _, port := range m.protocols() {
		if m.dnsPort != 0 {
			port.Port, port.TargetPort = 53, intstr.FromInt32(m.dnsPort)
			ports = append(ports, port)
		}
	}
	service.Spec.Ports = ports
	return !equality.Semantic.DeepEqual(*before, service.Spec)
}
