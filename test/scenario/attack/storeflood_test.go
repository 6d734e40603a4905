package attack

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestTenantCannotFloodStore writes one large object again and again. Each write takes memory of
// the control plane, and a part of the database until the next compaction.
func TestTenantCannotFloodStore(t *testing.T) {
	s := tenants(t)
	// A write takes less than a second, in which half of its size becomes free again.
	const size, writes = 1 << 20, 80
	flood := kit.CorePath(s.evil, "configmaps/flood")
	s.mallory.May("POST", kit.CorePath(s.evil, "configmaps"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: flood}}")
	large, err := json.Marshal(map[string]any{"data": map[string]string{"large": strings.Repeat("x", size-1000)}})
	if err != nil {
		t.Fatal(err)
	}
	s.mallory.May("PATCH", flood, string(large))
	count := 0
	for ; count < writes; count++ {
		request := s.mallory.Rest.Verb("PATCH").AbsPath(flood).Param("timeout", "1s").SetHeader("Content-Type", "application/merge-patch+json")
		patch := `{"data":{"count":"` + strings.Repeat("x", count) + `"}}` // small, with a large result
		err := request.Body([]byte(patch)).Do(t.Context()).Error()
		if err != nil {
			t.Logf("write %d: %v", count, err)
		}
		if err != nil && strings.Contains(err.Error(), "too many large objects") {
			break
		}
	}
	if count == writes {
		t.Errorf("%d writes of %d bytes each have no limit", count, size)
	}
	s.mallory.May("PATCH", flood, `{"data":{"large":null}}`)
	s.alice.May("POST", kit.CorePath(s.shop, "configmaps"), string(large[:1])+`"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large"},`+string(large[1:]))
}
