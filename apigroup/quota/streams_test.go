package quota

import (
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/slipway-platform/slipway/apiserver/storetest"
)

func TestRequestsThatCreateImageStreams(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	streams := storetest.New(imagev1.Resource("imagestreams"), &imagev1.ImageStreamList{}, &imagev1.ImageStream{ObjectMeta: meta("app")})
	l := &ledger{stores: map[schema.GroupResource]*registry.Store{imagev1.Resource("imagestreams"): streams}}
	for name, tt := range map[string]struct {
		object runtime.Object
		want   string
	}{
		"import into a new stream":       {&imagev1.ImageStreamImport{ObjectMeta: meta("new"), Spec: imagev1.ImageStreamImportSpec{Import: true}}, "new"},
		"import into an existing stream": {&imagev1.ImageStreamImport{ObjectMeta: meta("app"), Spec: imagev1.ImageStreamImportSpec{Import: true}}, ""},
		"preview of an import":           {&imagev1.ImageStreamImport{ObjectMeta: meta("new")}, ""},
		"image stream tag, new stream":   {&imagev1.ImageStreamTag{ObjectMeta: meta("new:v1")}, "new"},
		"image stream tag, old stream":   {&imagev1.ImageStreamTag{ObjectMeta: meta("app:v1")}, ""},
		"image tag of a new stream":      {&imagev1.ImageTag{ObjectMeta: meta("new:v1")}, "new"},
		"another kind":                   {&corev1.Secret{ObjectMeta: meta("new")}, ""},
	} {
		request := admission.NewAttributesRecord(tt.object, nil, schema.GroupVersionKind{}, "shop", "", schema.GroupVersionResource{}, "", admission.Create, nil, false, nil)
		if got, err := l.createdStream(t.Context(), request); err != nil || got != tt.want {
			t.Errorf("%s creates the stream %q, %v, want %q", name, got, err, tt.want)
		}
	}
}

func TestSideEffectReservesImageStream(t *testing.T) {
	l := &ledger{stores: map[schema.GroupResource]*registry.Store{
		imagev1.Resource("imagestreams"): storetest.New[*imagev1.ImageStream](imagev1.Resource("imagestreams"), &imagev1.ImageStreamList{}),
	}}
	tag := &imagev1.ImageStreamTag{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new:v1"}}
	request := admission.NewAttributesRecord(tag, nil, imagev1.GroupVersion.WithKind("ImageStreamTag"), "shop", "new:v1",
		imagev1.GroupVersion.WithResource("imagestreamtags"), "", admission.Create, nil, false, nil)
	c := quotaPlugin{registry: generic.NewRegistry([]quota.Evaluator{imageStreams()})}
	_, uses, err := c.handled(t.Context(), l, request)
	if got := uses[streamsName]; err != nil || got.Value() != 1 {
		t.Errorf("the request reserves %v, %v, want one image stream", uses, err)
	}
}
