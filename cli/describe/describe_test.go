package describe

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	documents "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic/fake"
	kubectl "k8s.io/kubectl/pkg/describe"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestKindsAreDescribed describes the first object of each file in testdata, in a cluster that has the others; the golden file beside it
// has the text.
func TestKindsAreDescribed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	described := map[schema.GroupKind]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			cluster := load(t, file)
			object := cluster[0]
			kind := object.GroupVersionKind()
			described[kind.GroupKind()] = true
			resource, _ := meta.UnsafeGuessKindToResource(kind)
			d := describer{
				client: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds(), asObjects(cluster)...),
				server: "https://master:8443", resource: resource, write: kinds()[kind.GroupKind()],
				now: func() time.Time { return time.Date(2026, 1, 2, 0, 10, 0, 0, time.UTC) },
			}
			text, err := d.Describe(object.GetNamespace(), object.GetName(), kubectl.DescriberSettings{})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, strings.TrimSuffix(file, ".yaml")+".golden", text)
		})
	}
	for kind := range kinds() {
		if !described[kind] {
			t.Errorf("no file describes a %s", kind)
		}
	}
}

func load(t *testing.T, file string) (cluster []*unstructured.Unstructured) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reader := documents.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return cluster
		}
		text, convert := yaml.YAMLToJSON(document)
		object := &unstructured.Unstructured{}
		if err := errors.Join(err, convert, object.UnmarshalJSON(text)); err != nil {
			t.Fatal(err)
		}
		cluster = append(cluster, object)
	}
}

func asObjects(cluster []*unstructured.Unstructured) (all []runtime.Object) {
	for _, object := range cluster {
		all = append(all, object)
	}
	return all
}

// listKinds are the kinds that writers list, which the fake client must know before there is one.
func listKinds() map[schema.GroupVersionResource]string {
	return map[schema.GroupVersionResource]string{
		{Version: "v1", Resource: "pods"}:                                      "PodList",
		{Version: "v1", Resource: "replicationcontrollers"}:                    "ReplicationControllerList",
		{Version: "v1", Resource: "resourcequotas"}:                            "ResourceQuotaList",
		{Version: "v1", Resource: "limitranges"}:                               "LimitRangeList",
		{Group: "build.openshift.io", Version: "v1", Resource: "builds"}:       "BuildList",
		{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}: "EndpointSliceList",
	}
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); -update rewrites it:\n%s", file, diff)
	}
}
