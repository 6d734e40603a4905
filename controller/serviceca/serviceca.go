// Package serviceca gives services certificates of their own, and gives whoever asks for it the authority that has signed them: a service's
// annotation names the secret with its certificate and key, and an annotation of a ConfigMap, an APIService, a CustomResourceDefinition or a webhook
// configuration asks for the authority. Each namespace has it in the ConfigMap openshift-service-ca.crt, from where it comes into pods.
//
// Source: OpenShift Container Platform 3.9 Architecture, section on TLS; annotations, types and keys are those of OpenShift 3.11.
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

// Certificates issues certificates of services and hands their authority out.
type Certificates struct {
	// Client is a connection with every right.
	Client *rest.Config
	// CertFile and KeyFile are the signer's, in PEM; BundleFile holds the certificates that verify what it and its predecessors have signed. All
	// are read anew whenever they are needed.
	CertFile, KeyFile, BundleFile string
	// Domain is the domain of the cluster; empty means cluster.local.
	Domain string
	// Now tells the time; nil means time.Now.
	Now func() time.Time

	client  kubernetes.Interface
	dynamic dynamic.Interface

	services, secrets, namespaces cache.SharedIndexInformer
	injected                      map[target]cache.SharedIndexInformer
}

// Name is the part's name.
func (*Certificates) Name() string { return "service-certificates" }

// lookAgain is when everything is looked at again that has a certificate or the authority: both may have been replaced meanwhile.
const lookAgain = time.Hour

// Run works until ctx ends. It calls ready when it knows what is there.
func (c *Certificates) Run(ctx context.Context, ready func()) error {
	config := rest.CopyConfig(c.Client)
	config.QPS, config.Burst = 50, 50
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect for certificates of services: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("connect for certificates of services: %w", err)
	}
	config.ContentType = runtime.ContentTypeProtobuf
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("connect for certificates of services: %w", err)
	}
	if err := c.watch(objects); err != nil {
		return err
	}
	for _, informer := range c.informers() {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			informer.RunWithContext(ctx)
		}()
		defer func() { <-ended }()
	}
	return controller.Set(c.loops()).Run(ctx, ready)
}

func (c *Certificates) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// prefixes are those of the annotations: the one of OpenShift 3, and the one that came after it.
func prefixes() []string {
	return []string{"service.alpha.openshift.io/", "service.beta.openshift.io/"}
}

// annotation is the value of an annotation under any of its prefixes.
func annotation(annotations map[string]string, name string) string {
	for _, prefix := range prefixes() {
		if value := annotations[prefix+name]; value != "" {
			return value
		}
	}
	return ""
}
