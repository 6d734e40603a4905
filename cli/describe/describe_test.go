package describe

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubectldescribe "k8s.io/kubectl/pkg/describe"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

// TestKindsAreDescribed describes the first object in each file in testdata, in a cluster that
// contains all objects in that file. The description must match the golden file with the same name.
func TestKindsAreDescribed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	description := map[schema.GroupKind]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			cluster := objectstest.Load(t, file)
			object := cluster[0]
			kind := object.GroupVersionKind()
			description[kind.GroupKind()] = true
			resource, _ := meta.UnsafeGuessKindToResource(kind)
			d := describer{
				client: objectstest.Client(cluster, [][2]string{
					{"v1", "Pod"}, {"v1", "ReplicationController"}, {"v1", "ResourceQuota"}, {"v1", "LimitRange"},
					{"build.openshift.io/v1", "Build"}, {"discovery.k8s.io/v1", "EndpointSlice"},
				}...),
				server: "https://master:8443", resource: resource, write: kinds()[kind.GroupKind()],
				now: func() time.Time { return time.Date(2026, 1, 2, 0, 10, 0, 0, time.UTC) },
			}
			text, err := d.Describe(object.GetNamespace(), object.GetName(), kubectldescribe.DescriberSettings{})
			if err != nil {
				t.Fatal(err)
			}
			objectstest.Golden(t, strings.TrimSuffix(file, ".yaml")+".golden", text)
		})
	}
	for kind := range kinds() {
		if !description[kind] {
			t.Errorf("no file describes a %s", kind)
		}
	}
}
