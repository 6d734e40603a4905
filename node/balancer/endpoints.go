package balancer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Connect sets the balancer's functions: it checks the API servers as an anonymous client, and
// watches the list of API servers with config's credentials.
func (b *Balancer) Connect(config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create API server client: %w", err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return fmt.Errorf("create API server client: %w", err)
	}
	b.HTTP, b.Watch = &http.Client{Transport: transport}, WatchService(client, "kubernetes")
	return nil
}

// WatchService returns a function that watches the endpoints of a service in the "default"
// namespace, such as `kubernetes`, in which each API server registers itself.
func WatchService(client kubernetes.Interface, service string) func(context.Context, func([]string)) {
	return func(ctx context.Context, changed func([]string)) {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithNamespace(metav1.NamespaceDefault),
			informers.WithTweakListOptions(func(options *metav1.ListOptions) {
				options.LabelSelector = discoveryv1.LabelServiceName + "=" + service
			}))
		informer := factory.Discovery().V1().EndpointSlices().Informer()
		notify := func(any) { changed(addresses(informer.GetStore().List())) }
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: notify, DeleteFunc: notify, UpdateFunc: func(_, object any) { notify(object) },
		})
		if err != nil {
			// This cannot happen, because a new informer accepts handlers.
			panic(fmt.Sprintf("watch service %s: %v", service, err))
		}
		factory.StartWithContext(ctx)
		<-ctx.Done()
		factory.Shutdown()
	}
}

// addresses returns the sorted host:port addresses in endpoint slices. It omits the DNS server's
// ports in the `kubernetes` service.
func addresses(objects []any) (list []string) {
	for _, object := range objects {
		slice := object.(*discoveryv1.EndpointSlice)
		for _, port := range slice.Ports {
			if port.Port == nil || port.Name != nil && strings.HasPrefix(*port.Name, "dns") {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				for _, address := range endpoint.Addresses {
					list = append(list, net.JoinHostPort(address, strconv.Itoa(int(*port.Port))))
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
