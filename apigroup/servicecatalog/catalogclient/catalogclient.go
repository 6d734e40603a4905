// Package catalogclient contains typed clients and informers for the servicecatalog.k8s.io API
// group.
package catalogclient

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// Typed clients for each kind. The type parameters of gentype are a kind and its list type.
type (
	ClusterBrokers = gentype.ClientWithList[*v1beta1.ClusterServiceBroker, *v1beta1.ClusterServiceBrokerList]
	Brokers        = gentype.ClientWithList[*v1beta1.ServiceBroker, *v1beta1.ServiceBrokerList]
	ClusterClasses = gentype.ClientWithList[*v1beta1.ClusterServiceClass, *v1beta1.ClusterServiceClassList]
	Classes        = gentype.ClientWithList[*v1beta1.ServiceClass, *v1beta1.ServiceClassList]
	ClusterPlans   = gentype.ClientWithList[*v1beta1.ClusterServicePlan, *v1beta1.ClusterServicePlanList]
	Plans          = gentype.ClientWithList[*v1beta1.ServicePlan, *v1beta1.ServicePlanList]
	Instances      = gentype.ClientWithList[*v1beta1.ServiceInstance, *v1beta1.ServiceInstanceList]
	Bindings       = gentype.ClientWithList[*v1beta1.ServiceBinding, *v1beta1.ServiceBindingList]
)

// Client is a client for the API group.
type Client struct {
	rest      rest.Interface
	parameter runtime.ParameterCodec
	// Scheme contains the types of the API group.
	Scheme *runtime.Scheme
}

// New returns a client.
func New(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := v1beta1.Install(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	gv := v1beta1.GroupVersion()
	config.GroupVersion, config.APIPath = &gv, "/apis"
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create service catalog client: %w", err)
	}
	return &Client{client, runtime.NewParameterCodec(scheme), scheme}, nil
}

// object is a pointer to one of the group's types. list is a pointer to the corresponding list
// type.
type object interface {
	runtime.Object
	metav1.Object
}

type list interface {
	runtime.Object
	metav1.ListInterface
}

func typed[T object, L list](c *Client, resource, namespace string, newObject func() T, newList func() L) *gentype.ClientWithList[T, L] {
	return gentype.NewClientWithList(resource, c.rest, c.parameter, namespace, newObject, newList)
}

// ClusterBrokers returns the ClusterServiceBroker client.
func (c *Client) ClusterBrokers() *ClusterBrokers {
	return typed(c, "clusterservicebrokers", "", func() *v1beta1.ClusterServiceBroker { return &v1beta1.ClusterServiceBroker{} },
		func() *v1beta1.ClusterServiceBrokerList { return &v1beta1.ClusterServiceBrokerList{} })
}

// Brokers returns the ServiceBroker client for a namespace.
func (c *Client) Brokers(namespace string) *Brokers {
	return typed(c, "servicebrokers", namespace, func() *v1beta1.ServiceBroker { return &v1beta1.ServiceBroker{} },
		func() *v1beta1.ServiceBrokerList { return &v1beta1.ServiceBrokerList{} })
}

// ClusterClasses returns the ClusterServiceClass client.
func (c *Client) ClusterClasses() *ClusterClasses {
	return typed(c, "clusterserviceclasses", "", func() *v1beta1.ClusterServiceClass { return &v1beta1.ClusterServiceClass{} },
		func() *v1beta1.ClusterServiceClassList { return &v1beta1.ClusterServiceClassList{} })
}

// Classes returns the ServiceClass client for a namespace.
func (c *Client) Classes(namespace string) *Classes {
	return typed(c, "serviceclasses", namespace, func() *v1beta1.ServiceClass { return &v1beta1.ServiceClass{} },
		func() *v1beta1.ServiceClassList { return &v1beta1.ServiceClassList{} })
}

// ClusterPlans returns the ClusterServicePlan client.
func (c *Client) ClusterPlans() *ClusterPlans {
	return typed(c, "clusterserviceplans", "", func() *v1beta1.ClusterServicePlan { return &v1beta1.ClusterServicePlan{} },
		func() *v1beta1.ClusterServicePlanList { return &v1beta1.ClusterServicePlanList{} })
}

// Plans returns the ServicePlan client for a namespace.
func (c *Client) Plans(namespace string) *Plans {
	return typed(c, "serviceplans", namespace, func() *v1beta1.ServicePlan { return &v1beta1.ServicePlan{} },
		func() *v1beta1.ServicePlanList { return &v1beta1.ServicePlanList{} })
}

// Instances returns the ServiceInstance client for a namespace.
func (c *Client) Instances(namespace string) *Instances {
	return typed(c, "serviceinstances", namespace, func() *v1beta1.ServiceInstance { return &v1beta1.ServiceInstance{} },
		func() *v1beta1.ServiceInstanceList { return &v1beta1.ServiceInstanceList{} })
}

// Bindings returns the ServiceBinding client for a namespace.
func (c *Client) Bindings(namespace string) *Bindings {
	return typed(c, "servicebindings", namespace, func() *v1beta1.ServiceBinding { return &v1beta1.ServiceBinding{} },
		func() *v1beta1.ServiceBindingList { return &v1beta1.ServiceBindingList{} })
}

// UpdateReference updates an instance's class and plan references.
func (c *Client) UpdateReference(ctx context.Context, instance *v1beta1.ServiceInstance) (*v1beta1.ServiceInstance, error) {
	result := &v1beta1.ServiceInstance{}
	err := c.rest.Put().Namespace(instance.Namespace).Resource("serviceinstances").Name(instance.Name).SubResource("reference").
		Body(instance).Do(ctx).Into(result)
	return result, err
}

// Informer returns an informer for a client's objects in all namespaces. trim returns the part of
// an object that the informer caches. If trim is nil, the informer strips only managed fields.
func Informer[T object, L list](client *gentype.ClientWithList[T, L], trim func(T) T) cache.SharedIndexInformer {
	var example T
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}, example, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	_ = informer.SetTransform(func(value any) (any, error) { // fails only for a started informer
		object, ok := value.(T)
		switch {
		case ok && trim != nil:
			return trim(object), nil
		case ok:
			object.SetManagedFields(nil)
		}
		return value, nil
	})
	return informer
}
