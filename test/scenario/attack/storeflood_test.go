package attack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// configMap creates a ConfigMap with size bytes of data in Mallory's project.
func (s *stage) configMap(name string, size int) {
	s.mallory.May("POST", kit.CorePath(s.evil, "configmaps"),
		fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"text":%q}}`, name, strings.Repeat("x", size)))
}

// change makes a small change to a ConfigMap, which makes the API server write the whole object.
func (s *stage) change(ctx context.Context, name string, retries int) error {
	body := []byte(`{"data":{"change":"` + rand.Text() + `"}}`)
	return s.mallory.Rest.Patch(types.MergePatchType).AbsPath(kit.CorePath(s.evil, "configmaps/"+name)).MaxRetries(retries).Body(body).Do(ctx).Error()
}

// flood changes Mallory's large objects from several clients until the test ends. The clients retry
// a rejected request if the response specifies a delay.
func (s *stage) flood(t *testing.T) {
	t.Helper()
	const clients, size, retries = 4, 1000 << 10, 10
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for client := range clients {
		name := fmt.Sprint("flood-", client)
		s.configMap(name, size)
		running.Go(func() {
			for ctx.Err() == nil {
				_ = s.change(ctx, name, retries) // the API server rejects most changes
			}
		})
	}
}

// TestTenantWritesAreRateLimited repeatedly writes large and small objects. Each write uses memory
// in the control plane and, until the next compaction, space in the database.
func TestTenantWritesAreRateLimited(t *testing.T) {
	s := tenants(t)
	const large, small, clients = 1000 << 10, 15 << 10, 8
	for _, size := range []int{large, small} {
		for client := range clients {
			s.configMap(fmt.Sprintf("probe-%d-%d", size, client), size)
		}
	}
	s.flood(t)
	for _, size := range []int{large, small} {
		s.WaitFor(fmt.Sprintf("a rejected change of %d bytes", size), func(ctx context.Context) error {
			results := make(chan error, clients)
			for client := range clients {
				go func() { results <- s.change(ctx, fmt.Sprintf("probe-%d-%d", size, client), 0) }()
			}
			refused := false
			for range clients {
				err := <-results
				if !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "too many or too large objects") {
					continue
				}
				refused = true
				if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds < 1 {
					t.Errorf("the rejection does not contain a delay for the retry: %v", err)
				}
			}
			if !refused {
				return errors.New("no change was rejected")
			}
			return nil
		})
	}
	s.alice.May("POST", kit.CorePath(s.shop, "configmaps"),
		fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large"},"data":{"text":%q}}`, strings.Repeat("x", large)))
	s.mallory.May("DELETE", kit.CorePath(s.evil, fmt.Sprintf("configmaps/probe-%d-0", small)), "")
}

// TestPlatformNeverWaitsForFloodOfTenant writes a pod's status repeatedly, as the scheduler and a
// controller do, while the pod's tenant floods the store.
func TestPlatformNeverWaitsForFloodOfTenant(t *testing.T) {
	s := tenants(t)
	const large = 200 << 10
	s.mallory.May("POST", kit.CorePath(s.evil, "pods"),
		strings.Replace(sleeper("stuck", "{}", "{}"), "infinity", strings.Repeat("x", large), 1)+"  nodeSelector: {no: node}\n")
	s.flood(t)
	for name, identity := range map[string]rest.ImpersonationConfig{
		"scheduler": {UserName: "system:kube-scheduler", Groups: []string{"system:authenticated"}},
		"controller": {UserName: "system:serviceaccount:kube-system:node-controller",
			Groups: []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:kube-system"}},
	} {
		component := s.Impersonate(identity)
		s.WaitFor("a rejection of the "+name, func(ctx context.Context) error {
			err := component.Rest.Patch(types.MergePatchType).AbsPath(kit.CorePath(s.evil, "pods/stuck/status")).
				Body([]byte(`{"status":{"message":"` + rand.Text() + `"}}`)).Do(ctx).Error()
			if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
				t.Fatalf("the %s has to wait for %d seconds: %v", name, seconds, err)
			}
			if !apierrors.IsTooManyRequests(err) {
				return fmt.Errorf("the write was not rejected: %w", err)
			}
			return nil
		})
	}
	s.alice.May("POST", kit.CorePath(s.shop, "pods"), sleeper("honest", "{}", "{}"))
	s.In(s.shop).WaitPodRunning("honest")
}

// TestUserCannotFillStoreWithTokens requests tokens and codes with a long text that the user
// chooses. The API server would store the text with each token and code.
func TestUserCannotFillStoreWithTokens(t *testing.T) {
	web := siteOf(t, kit.Shared(t))
	browser := web.browser(nil)
	web.logIn(browser)
	long := strings.Repeat("x", 48<<10)
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
