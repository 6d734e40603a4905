// Package serviceaccount gives service accounts the secrets that OpenShift 3 gave them: an API token, and the credentials of the integrated
// registry, which are made of it. Kubernetes fills token secrets in and removes them with their account; it makes none by itself.
//
// Source: OpenShift 3.11 Cluster Administration, 9.3; the names, types and annotations are those of OpenShift 3.
package serviceaccount

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// Secrets makes the secrets of service accounts, again whenever one is removed. Accounts of kube-system, which are those of Kubernetes' own
// controllers, have none: they ask for tokens that expire.
type Secrets struct {
	// Client is a connection with every right.
	Client *rest.Config
	// Domain is the domain of the cluster, by which the registry is called too.
	Domain string
	// Hosts are further names of the registry, with ports.
	Hosts []string

	client                                  kubernetes.Interface
	accounts, tokens, credentials, registry cache.SharedIndexInformer
}

// Name is the part's name.
func (s *Secrets) Name() string { return "service-account-secrets" }

// Run makes secrets until ctx ends. It calls ready when it knows what is there.
func (s *Secrets) Run(ctx context.Context, ready func()) error {
	config := rest.CopyConfig(s.Client)
	config.QPS, config.Burst = 50, 50 // so that the accounts of a first start keep nobody waiting
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect for secrets of service accounts: %w", err)
	}
	return s.run(ctx, client, ready)
}

func (s *Secrets) run(ctx context.Context, client kubernetes.Interface, ready func()) error {
	s.client = client
	all := informers.NewSharedInformerFactory(client, 0)
	s.accounts = all.Core().V1().ServiceAccounts().Informer()
	tokens, credentials := ofType(client, corev1.SecretTypeServiceAccountToken), ofType(client, corev1.SecretTypeDockercfg)
	s.tokens, s.credentials = tokens.Core().V1().Secrets().Informer(), credentials.Core().V1().Secrets().Informer()
	registry := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(registryNamespace), selecting("metadata.name", registryName))
	s.registry = registry.Core().V1().Services().Informer()
	for _, informer := range []cache.SharedIndexInformer{s.tokens, s.credentials} {
		if err := informer.AddIndexers(cache.Indexers{byAccount: accountsOf}); err != nil {
			return fmt.Errorf("index secrets: %w", err)
		}
	}
	defer controller.Start(ctx, all, tokens, credentials, registry)()
	return controller.Set{s.loop()}.Run(ctx, ready)
}

func (s *Secrets) loop() controller.Loop {
	return controller.Loop{
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

// byAccount is the index of secrets by the account that they name, as namespace/name.
const byAccount = "account"

func accountsOf(object any) ([]string, error) {
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

func ofType(client kubernetes.Interface, of corev1.SecretType) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, selecting("type", string(of)))
}

func selecting(field, value string) informers.SharedInformerOption {
	return informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(field, value).String()
	})
}

// services is the cache of the registry's service.
func (s *Secrets) services() corelisters.ServiceLister {
	return corelisters.NewServiceLister(s.registry.GetIndexer())
}
