package image

import (
	"bytes"
	"strings"
	"testing"

	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

func TestTopListsImagesAndStreams(t *testing.T) {
	base, child := newImage(1), newImage(2)
	child.DockerImageLayers = append(base.DockerImageLayers[:1:1], child.DockerImageLayers...)
	child.DockerImageMetadata = runtime.RawExtension{Raw: []byte(`{"Size": 3145828}`)}
	child.DockerImageConfig = strings.Repeat(" ", 100<<10)
	client := imagefake.NewSimpleClientset(base, child, history("app", map[string][]int{"latest": {2, 1}}), history("base", map[string][]int{"v1": {1}}),
		history("empty", nil)).ImageV1()
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "shop", "name": "web"}, "status": map[string]any{"phase": "Running"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "docker-registry.default.svc:5000/shop/app:latest"}}},
	}}
	var out bytes.Buffer
	using := objectstest.Client([]*unstructured.Unstructured{pod}, [2]string{"v1", "Pod"})
	if err := topImages(t.Context(), client, using, "", &out); err != nil {
		t.Fatal(err)
	}
	if err := topStreams(t.Context(), client, using, "", &out); err != nil {
		t.Fatal(err)
	}
	objectstest.Golden(t, "testdata/top.golden", out.String())
}
