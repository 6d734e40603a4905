package build

import (
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/apiserver/storetest"
)

func TestBuildReadsStreamOnce(t *testing.T) {
	resource := imagev1.Resource("imagestreams")
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	stores := map[schema.GroupResource]*registry.Store{resource: storetest.New(resource, &imagev1.ImageStreamList{}, stream)}
	config := &buildv1.BuildConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	images := buildStore{apiserver.Deps{Stores: stores}}.images(t.Context(), config)
	first, err := images("shop", "app")
	if err != nil || first == nil {
		t.Fatalf("stream %v, error %v", first, err)
	}
	if second, _ := images("shop", "app"); second != first {
		t.Error("the stream is read twice")
	}
}
