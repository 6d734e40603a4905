package registry

import (
	"context"
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	routeclient "github.com/openshift/client-go/route/clientset/versioned/typed/route/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
)

// hostGenerated is the annotation on routes whose host was generated.
const hostGenerated = "openshift.io/host.generated"

// expose creates the docker-registry route for clients outside the cluster. The route passes TLS
// through. If the route exists, expose only updates a generated host. It does not change a host
// that a user has set.
func expose(ctx context.Context, config *rest.Config, host string) error {
	client, err := routeclient.NewForConfig(config)
	if err != nil {
		return err
	}
	routes := client.Routes(serviceNamespace)
	route, err := routes.Get(ctx, serviceName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = routes.Create(ctx, &routev1.Route{
			ObjectMeta: metav1.ObjectMeta{
				Name: serviceName, Labels: map[string]string{serviceName: "default"}, Annotations: map[string]string{hostGenerated: "true"},
			},
			Spec: routev1.RouteSpec{
				Host: host, To: routev1.RouteTargetReference{Kind: "Service", Name: serviceName},
				Port: &routev1.RoutePort{TargetPort: intstr.FromString(portName)},
				TLS:  &routev1.TLSConfig{Termination: routev1.TLSTerminationPassthrough},
			},
		}, metav1.CreateOptions{})
	case err == nil && route.Annotations[hostGenerated] == "true" && route.Spec.Host != host:
		route.Spec.Host = host
		_, err = routes.Update(ctx, route, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create route %q: %w", serviceName, err)
	}
	return nil
}
