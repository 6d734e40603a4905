package registry

import (
	"context"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	discoveryapply "k8s.io/client-go/applyconfigurations/discovery/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/registry/registryname"
)

// Namespace, name and port of the registry's service.
const (
	serviceNamespace = registryname.Namespace
	serviceName      = registryname.Service
	servicePort      = 5000
	portName         = registryname.Port + "-tcp"
)

// publish applies the docker-registry service with ip, this host's address, as its endpoint. listen
// is the address on which the registry listens.
func publish(ctx context.Context, config *rest.Config, ip net.IP, listen string) error {
	_, text, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("parse registry address: %w", err)
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf("parse registry port: %w", err)
	}
	core, err := coreclient.NewForConfig(config)
	if err != nil {
		return err
	}
	slices, err := discoveryclient.NewForConfig(config)
	if err != nil {
		return err
	}
	force := metav1.ApplyOptions{FieldManager: "slipway-registry", Force: true}
	labels := map[string]string{serviceName: "default"}
	service := applycore.Service(serviceName, serviceNamespace).WithLabels(labels).WithSpec(applycore.ServiceSpec().
		WithPorts(applycore.ServicePort().WithName(portName).WithPort(servicePort).WithProtocol(corev1.ProtocolTCP).WithTargetPort(intstr.FromInt32(int32(port)))))
	if _, err := core.Services(serviceNamespace).Apply(ctx, service, force); err != nil {
		return fmt.Errorf("apply service %q: %w", serviceName, err)
	}
	endpoints := discoveryapply.EndpointSlice(serviceName, serviceNamespace).
		WithLabels(map[string]string{discoveryv1.LabelServiceName: serviceName, discoveryv1.LabelManagedBy: "slipway"}).
		WithAddressType(addressType(ip)).
		WithEndpoints(discoveryapply.Endpoint().WithAddresses(ip.String()).WithConditions(discoveryapply.EndpointConditions().WithReady(true))).
		WithPorts(discoveryapply.EndpointPort().WithName(portName).WithPort(int32(port)).WithProtocol(corev1.ProtocolTCP))
	if _, err := slices.EndpointSlices(serviceNamespace).Apply(ctx, endpoints, force); err != nil {
		return fmt.Errorf("apply endpoints of service %q: %w", serviceName, err)
	}
	return nil
}

func addressType(ip net.IP) discoveryv1.AddressType {
	if ip.To4() == nil {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}
