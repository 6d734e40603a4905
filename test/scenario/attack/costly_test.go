package attack

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestIndentedListsCannotExhaustMemory requests many lists and does not read the responses. Without
// a limit, the server would keep a copy of each list until the request times out.
func TestIndentedListsCannotExhaustMemory(t *testing.T) {
	const objects, readers = 6, 20
	s := tenants(t)
	pid, path := s.Status().PID("control-plane"), kit.CorePath(s.evil, "configmaps")
	for n := range objects {
		s.mallory.May("POST", path, fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large-%d"}, "data": {"a": %q}}`, n, strings.Repeat("x", 900_000)))
	}
	streams := make([]io.ReadCloser, readers)
	growth := peakDuring(t, pid, func() {
		var group sync.WaitGroup
		for n := range streams {
			group.Go(func() {
				var err error
				if streams[n], err = s.mallory.Rest.Get().AbsPath(path).Param("pretty", "true").Stream(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	})
	for _, stream := range streams {
		if stream != nil {
			_ = stream.Close() // closing the stream ends the request
		}
	}
	t.Logf("the memory grows by %d MiB", growth)
	if growth > maxGrowth {
		t.Errorf("the memory of the control plane grows by %d MiB", growth)
	}
}

// TestPatchOfTenantIsBounded sends a patch whose cost is proportional to the patch size times the
// object size.
func TestPatchOfTenantIsBounded(t *testing.T) {
	s := tenants(t)
	variables := func(prefix string, number int) string {
		list := make([]map[string]string, number)
		for n := range list {
			list[n] = map[string]string{"name": fmt.Sprint(prefix, n)}
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	path := kit.GroupPath("apps", s.evil, "deployments")
	s.mallory.May("POST", path, `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "large"}, "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}},
		"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x", "env": `+variables("e", 6000)+`}]}}}}`)
	for media, body := range map[string]string{
		"application/strategic-merge-patch+json": `{"spec": {"template": {"spec": {"containers": [{"name": "c", "env": ` + variables("f", 6000) + `}]}}}}`,
		"application/json-patch+json":            "[" + strings.Repeat(`{"op": "move", "from": "/spec/template/spec/containers/0/env/0", "path": "/spec/template/spec/containers/0/env/5999"},`, 4000) + `{"op": "remove", "path": "/spec/template/spec/containers/0/env/0"}]`,
	} {
		err := s.mallory.Rest.Patch("").AbsPath(path+"/large").SetHeader("Content-Type", media).Body([]byte(body)).Do(t.Context()).Error()
		if !apierrors.IsRequestEntityTooLargeError(err) {
			t.Errorf("%s: %v", media, err)
		}
	}
}
