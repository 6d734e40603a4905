package controller

import (
	"context"
	"errors"
	"fmt"

	imageclient "github.com/openshift/client-go/image/clientset/versioned"
	imageinformers "github.com/openshift/client-go/image/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
)

// Deps contains the clients and caches that the controllers in a process share. The clients have
// all permissions. There is one cache for each type that several controllers read. The caches
// contain no managed fields, and metadata caches contain no last-applied configuration.
type Deps struct {
	// Config is the client configuration. Controllers use it to create clients for additional
	// types. All clients share one rate limiter.
	Config *rest.Config

	Kube     kubernetes.Interface
	Images   imageclient.Interface
	Dynamic  dynamic.Interface
	Metadata metadata.Interface

	// Informers, ImageInformers and MetadataInformers create informers. Start starts these
	// informers.
	Informers         informers.SharedInformerFactory
	ImageInformers    imageinformers.SharedInformerFactory
	MetadataInformers metadatainformer.SharedInformerFactory
	// TLSSecrets caches the metadata of secrets of type kubernetes.io/tls.
	TLSSecrets cache.SharedIndexInformer

	tlsSecrets metadatainformer.SharedInformerFactory
	stop       chan struct{}
}

// The client-side rate limit for all controllers in a process. The API server does not limit their
// requests, because the client's user is exempt.
const requestsPerSecond, burst = 500, 1000

// NewDeps returns the shared dependencies of a process. config must have all permissions.
func NewDeps(config *rest.Config) (*Deps, error) {
	config = rest.CopyConfig(config)
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(requestsPerSecond, burst)
	typed := rest.CopyConfig(config)
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	d := &Deps{Config: config}
	var errs [4]error
	d.Kube, errs[0] = kubernetes.NewForConfig(typed)
	d.Images, errs[1] = imageclient.NewForConfig(config)
	d.Dynamic, errs[2] = dynamic.NewForConfig(config)
	d.Metadata, errs[3] = metadata.NewForConfig(config)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("create controller clients: %w", err)
	}
	d.Init()
	return d, nil
}

// Init creates informer factories for the clients that are set.
func (d *Deps) Init() {
	d.stop = make(chan struct{})
	if d.Kube != nil {
		d.Informers = informers.NewSharedInformerFactoryWithOptions(d.Kube, 0, informers.WithTransform(removeManagedFields))
	}
	if d.Images != nil {
		d.ImageInformers = imageinformers.NewSharedInformerFactoryWithOptions(d.Images, 0, imageinformers.WithTransform(removeManagedFields))
	}
	if d.Metadata != nil {
		d.MetadataInformers = metadatainformer.NewSharedInformerFactoryWithOptions(d.Metadata, 0, metadatainformer.WithTransform(trimMetadata))
		d.tlsSecrets = metadatainformer.NewFilteredSharedInformerFactory(d.Metadata, 0, metav1.NamespaceAll, func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector("type", string(corev1.SecretTypeTLS)).String()
		})
		d.TLSSecrets = d.tlsSecrets.ForResource(corev1.SchemeGroupVersion.WithResource("secrets")).Informer()
		_ = d.TLSSecrets.SetTransform(trimMetadata) // fails only after the informer has started
	}
}

// removeManagedFields removes the managed fields, which no controller reads.
func removeManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// trimMetadata removes the managed fields and the last-applied configuration, which is as large as
// the object itself.
func trimMetadata(object any) (any, error) {
	if object, ok := object.(*metav1.PartialObjectMetadata); ok {
		delete(object.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return removeManagedFields(object)
}

// Name returns the component's name.
func (*Deps) Name() string { return "informers" }

// Run keeps the informers running until ctx is done, and then waits for them to stop. The
// controllers start after Run and stop before it.
func (d *Deps) Run(ctx context.Context, ready func()) error {
	ready()
	<-ctx.Done()
	close(d.stop)
	for _, factory := range d.factories() {
		factory.Shutdown()
	}
	return nil
}

// Start starts the informers that have been created since the last call. Each controller calls
// Start after it has created its informers. The informers run until Run returns, because other
// controllers might read them.
func (d *Deps) Start() {
	for _, factory := range d.factories() {
		factory.Start(d.stop)
	}
}

func (d *Deps) factories() (factories []Factory) {
	if d.Kube != nil {
		factories = append(factories, d.Informers)
	}
	if d.Images != nil {
		factories = append(factories, d.ImageInformers)
	}
	if d.Metadata != nil {
		factories = append(factories, d.MetadataInformers, d.tlsSecrets)
	}
	return factories
}

// AsServiceAccount returns a client that impersonates a service account.
func (d *Deps) AsServiceAccount(namespace, name string) (coreclient.CoreV1Interface, error) {
	config := rest.CopyConfig(d.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: serviceaccount.MakeUsername(namespace, name),
		Groups:   append(serviceaccount.MakeGroupNames(namespace), user.AllAuthenticated),
	}
	client, err := coreclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client of service account %s/%s: %w", namespace, name, err)
	}
	return client, nil
}
