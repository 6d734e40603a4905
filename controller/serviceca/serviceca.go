// Package serviceca issues serving certificates for services and distributes the CA bundle that
// verifies them. An annotation on a service specifies the secret for its certificate and key. An
// annotation on a ConfigMap, an APIService, a CustomResourceDefinition or a webhook configuration
// requests the CA bundle. Each namespace contains the bundle in a ConfigMap named
// openshift-service-ca.crt, which is mounted into pods.
//
// Source: OpenShift Container Platform 3.9 Architecture, section on TLS. The annotations, types and
// keys match those of OpenShift 3.11.
package serviceca

import (
	"context"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// Certificates is the component that issues serving certificates for services and distributes the
// CA bundle.
type Certificates struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// CertFile and KeyFile are the paths to the signer's certificate and key, in PEM format.
	// BundleFile contains the certificates of the current and previous signers. All files are read
	// again for each use.
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

// recheckInterval is the interval between checks of each object. The checks are necessary because
// the signer or the bundle might have been replaced.
const recheckInterval = time.Hour

// Run issues certificates until ctx is done. It calls ready when its caches have synced.
func (c *Certificates) Run(ctx context.Context, ready func()) error {
	c.client, c.dynamic = c.Deps.Kube, c.Deps.Dynamic
	if err := c.createInformers(); err != nil {
		return err
	}
	c.Deps.Start()
	return controller.Manager(c.controllers()).Run(ctx, ready)
}

func (c *Certificates) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// prefixes returns the annotation prefixes of OpenShift 3 and its successor.
func prefixes() []string {
	return []string{"service.alpha.openshift.io/", "service.beta.openshift.io/"}
}

// annotation returns the value of an annotation that has any of the prefixes.
func annotation(annotations map[string]string, name string) string {
	for _, prefix := range prefixes() {
		if value := annotations[prefix+name]; value != "" {
			return value
		}
	}
	return ""
}
