package image

import (
	"fmt"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/apiserver/storetest"
)

func TestPolicyReadsStreamOncePerRequest(t *testing.T) {
	store := func(names ...string) map[schema.GroupResource]*registry.Store {
		var streams []*imagev1.ImageStream
		for _, name := range names {
			streams = append(streams, &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
		}
		resource := imagev1.Resource("imagestreams")
		return map[schema.GroupResource]*registry.Store{resource: storetest.New(resource, &imagev1.ImageStreamList{}, streams...)}
	}
	plugin := &policy{deps: &apiserver.Deps{Stores: store("app")}}
	p := plugin.forRequest()
	for _, stores := range []map[schema.GroupResource]*registry.Store{store("app"), store()} {
		plugin.deps.Stores = stores
		if stream, err := p.stream(t.Context(), "shop", "app"); err != nil || stream == nil {
			t.Errorf("the stream in a request: %v, error %v", stream, err)
		}
	}
	if stream, err := plugin.forRequest().stream(t.Context(), "shop", "app"); err != nil || stream != nil {
		t.Errorf("the removed stream in the next request: %v, error %v", stream, err)
	}
	var names []string
	for i := range pull.MaxStreams + 1 {
		names = append(names, fmt.Sprintf("app-%d", i))
	}
	plugin.deps.Stores = store(names...)
	p = plugin.forRequest()
	for i := range 2 * pull.MaxStreams {
		if _, err := p.stream(t.Context(), "shop", fmt.Sprintf("missing-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range names {
		if _, err := p.stream(t.Context(), "shop", name); (err == nil) != (i < pull.MaxStreams) {
			t.Errorf("stream %d: %v", i, err)
		}
	}
}
