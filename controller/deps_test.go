package controller

import (
	"testing"

	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/componenttest"
)

func TestDepsListEachTypeOnce(t *testing.T) {
	managed := metav1.ObjectMeta{
		Name: "shop", Namespace: "shop", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "oc"}},
		Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "owner": "alice"},
	}
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: managed}
	namespace.Namespace = ""
	kube := fake.NewClientset(namespace)
	images := imagefake.NewClientset()
	deps := &Deps{Kube: kube, Images: images, Metadata: metadatafake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: managed,
	})}
	deps.Init()
	componenttest.Run(t, deps.Run)
	for range 2 {
		namespaces := deps.Informers.Core().V1().Namespaces().Informer()
		maps := deps.MetadataInformers.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer()
		deps.Start()
		if !cache.WaitForCacheSync(t.Context().Done(), namespaces.HasSynced, maps.HasSynced, deps.TLSSecrets.HasSynced) {
			t.Fatal("the caches do not sync")
		}
		for name, tt := range map[string]struct {
			store       cache.Store
			key         string
			annotations int
		}{"namespaces": {namespaces.GetStore(), "shop", 2}, "metadata of ConfigMaps": {maps.GetStore(), "shop/shop", 1}} {
			object, ok, err := tt.store.GetByKey(tt.key)
			if err != nil || !ok {
				t.Fatalf("%s: got %v, %v", name, ok, err)
			}
			if got := object.(metav1.Object); len(got.GetManagedFields()) > 0 || len(got.GetAnnotations()) != tt.annotations {
				t.Errorf("%s: got managed fields %v, annotations %v", name, got.GetManagedFields(), got.GetAnnotations())
			}
		}
	}
	lists := 0
	for _, action := range kube.Actions() {
		if action.GetVerb() == "list" {
			lists++
		}
	}
	if lists > 1 {
		t.Errorf("got %d lists of namespaces, want 1", lists)
	}
}

func TestClientsOfProcessShareRateLimiter(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	deps, err := NewDeps(config)
	if err != nil {
		t.Fatal(err)
	}
	if config.RateLimiter != nil {
		t.Error("NewDeps changed the caller's configuration")
	}
	builder, err := deps.AsServiceAccount("openshift-infra", "build-controller")
	if err != nil {
		t.Fatal(err)
	}
	limiter := deps.Config.RateLimiter
	if limiter == nil || deps.Kube.CoreV1().RESTClient().GetRateLimiter() != limiter || builder.RESTClient().GetRateLimiter() != limiter {
		t.Error("the clients have different rate limiters")
	}
}
