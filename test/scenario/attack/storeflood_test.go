package attack

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestTenantCannotFloodStore writes one large object repeatedly. Each write uses memory of the
// control plane, and a part of the database until the next compaction.
func TestTenantCannotFloodStore(t *testing.T) {
	s := tenants(t)
	// A write takes less than a second. In this time, half of its size becomes free again.
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
		// a small request with a large result
		patch := `{"data":{"count":"` + strings.Repeat("x", count) + `"}}`
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

// TestUserCannotFillStoreWithTokens requests tokens and codes with a long text of the user's
// choice. The server would store the text with each of them.
func TestUserCannotFillStoreWithTokens(t *testing.T) {
	web := siteOf(t, kit.Shared(t))
	browser := web.browser(nil)
	web.logIn(browser)
	long := strings.Repeat("x", 900<<10)
	for name, values := range map[string]url.Values{
		"redirect URI": {"response_type": {"token"}, "redirect_uri": {web.url + "/oauth/token/display?x=" + long}},
		"state":        {"response_type": {"code"}, "state": {long}},
	} {
		values.Set("client_id", "openshift-browser-client")
		got := web.get(browser, "/oauth/authorize?"+values.Encode())
		if got.StatusCode != http.StatusBadRequest || got.Header.Get("Location") != "" {
			t.Errorf("a long %s: %s", name, got.Status)
		}
	}
}
