// Package serviceca issues certificates for services and distributes the CA bundle that verifies
// them. An annotation of a service names the secret for its certificate and key. An annotation of a
// ConfigMap, an APIService, a CustomResourceDefinition or a webhook configuration requests the CA
// bundle. Each namespace has the bundle in the ConfigMap openshift-service-ca.crt, which is mounted
// into pods.
//
// Source: OpenShift Container Platform 3.9 Architecture, section on TLS; annotations, types and
// keys are those of OpenShift 3.11.
package serviceca

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// Certificates issues certificates for services and distributes the CA bundle.
type Certificates struct {
	// Client must have all permissions.
	Client *rest.Config
	// CertFile and KeyFile are the signer's, in PEM. BundleFile contains the certificates that
	// verify what the current and former signers have signed. All files are read again for each
	// use.
	CertFile, KeyFile, BundleFile string
	// Domain is the cluster domain. The default is cluster.local.
	Domain string
	// Now returns the current time. The default is time.Now.
	Now func() time.Time

	client  kubernetes.Interface
	dynamic dynamic.Interface

	services, secrets, namespaces cache.SharedIndexInformer
	injected                      map[target]cache.SharedIndexInformer
}

// Name returns the component's name.
func (*Certificates) Name() string { return "service-certificates" }

// recheckInterval is the interval of checks of each object, because the signer or the bundle may
// have been replaced.
const recheckInterval = time.Hour

// Run issues certificates until ctx ends. It calls ready when all objects are known.
func (c *Certificates) Run(ctx context.Context, ready func()) error {
	config := rest.CopyConfig(c.Client)
	config.QPS, config.Burst = 50, 50
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client for service certificates: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("create client for service certificates: %w", err)
	}
	config.ContentType = runtime.ContentTypeProtobuf
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("create client for service certificates: %w", err)
	}
	if err := c.makeInformers(objects); err != nil {
		return err
	}
	for _, informer := range c.informers() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			informer.RunWithContext(ctx)
		}()
		defer func() { <-done }()
	}
	return controller.Set(c.loops()).Run(ctx, ready)
}

func (c *Certificates) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// prefixes returns the prefixes of annotations: that of OpenShift 3 and its successor.
func prefixes() []string {
	return []string{"service.alpha.openshift.io/", "service.beta.openshift.io/"}
}

// annotation returns the value of an annotation with any of its prefixes.
func annotation(annotations map[string]string, name string) string {
	for _, prefix := range prefixes() {
		if value := annotations[prefix+name]; value != "" {
			return value
		}
	}
	return ""
}
