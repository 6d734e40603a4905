// Package serviceaccount creates the secrets that service accounts have in OpenShift 3: an API
// token, and credentials for the integrated registry, which contain this token. Kubernetes fills in
// token secrets and deletes them with their service account, but does not create them.
//
// Source: OpenShift 3.11 Cluster Administration, 9.3. The names, types and annotations match those
// of OpenShift 3.
package serviceaccount

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// Secrets creates secrets for service accounts and replaces deleted secrets. It skips service
// accounts in kube-system, because the Kubernetes controllers use these accounts and request tokens
// that expire.
type Secrets struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// Domain is the cluster domain, which is used for an additional registry host name.
	Domain string
	// Hosts lists additional registry hosts, including their ports.
	Hosts []string

	client                                  kubernetes.Interface
	accounts, tokens, credentials, registry cache.SharedIndexInformer
}

// Name returns the component's name.
func (s *Secrets) Name() string { return "service-account-secrets" }

// Run creates secrets until ctx is done. It calls ready when its caches have synced.
func (s *Secrets) Run(ctx context.Context, ready func()) error {
	client := s.Deps.Kube
	s.client = client
	s.accounts = s.Deps.Informers.Core().V1().ServiceAccounts().Informer()
	tokens, credentials := newSecretFactory(client, corev1.SecretTypeServiceAccountToken), newSecretFactory(client, corev1.SecretTypeDockercfg)
	s.tokens, s.credentials = tokens.Core().V1().Secrets().Informer(), credentials.Core().V1().Secrets().Informer()
	registry := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(registryNamespace), withFieldSelector("metadata.name", registryName))
	s.registry = registry.Core().V1().Services().Informer()
	for _, informer := range []cache.SharedIndexInformer{s.tokens, s.credentials} {
		if err := informer.AddIndexers(cache.Indexers{byAccount: accountIndex}); err != nil {
			return fmt.Errorf("index secrets: %w", err)
		}
	}
	s.Deps.Start()
	defer controller.Start(ctx, tokens, credentials, registry)()
	return controller.Manager{s.controller()}.Run(ctx, ready)
}

func (s *Secrets) controller() controller.Controller {
	return controller.Controller{
		Name: "service account secrets", Workers: 2, Reconcile: s.reconcile,
		Watches: []controller.Watch{
			{Informer: s.accounts},
			{Informer: s.tokens, Keys: accountKeys},
			{Informer: s.credentials, Keys: accountKeys},
			{Informer: s.registry, Keys: func(any) (keys []controller.Key) {
				for _, key := range s.accounts.GetStore().ListKeys() {
					if name, err := cache.ParseObjectName(key); err == nil {
						keys = append(keys, name)
					}
				}
				return keys
			}},
		},
	}
}

// byAccount is an index that maps service accounts, as namespace/name, to their secrets.
const byAccount = "account"

func accountIndex(object any) ([]string, error) {
	secret, ok := object.(*corev1.Secret)
	if !ok || secret.Annotations[corev1.ServiceAccountNameKey] == "" {
		return nil, nil
	}
	return []string{secret.Namespace + "/" + secret.Annotations[corev1.ServiceAccountNameKey]}, nil
}

func accountKeys(object any) []controller.Key {
	secret, ok := object.(*corev1.Secret)
	if !ok || secret.Annotations[corev1.ServiceAccountNameKey] == "" {
		return nil
	}
	return []controller.Key{{Namespace: secret.Namespace, Name: secret.Annotations[corev1.ServiceAccountNameKey]}}
}

func newSecretFactory(client kubernetes.Interface, secretType corev1.SecretType) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, withFieldSelector("type", string(secretType)))
}

func withFieldSelector(field, value string) informers.SharedInformerOption {
	return informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(field, value).String()
	})
}

// services returns a lister for the cache that contains the registry's service.
func (s *Secrets) services() corelisters.ServiceLister {
	return corelisters.NewServiceLister(s.registry.GetIndexer())
}
