package oauth

import (
	"slices"
	"testing"

	oauthv1 "github.com/openshift/api/oauth/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/store/storetest"
)

func TestClientsHaveAddressesOfAllMasters(t *testing.T) {
	for name, tt := range map[string]struct {
		several bool
		want    []string
	}{
		"an only master whose address changed": {false, []string{"https://second/oauth/token/implicit"}},
		"one of several masters":               {true, []string{"https://first/oauth/token/implicit", "https://second/oauth/token/implicit"}},
	} {
		t.Run(name, func(t *testing.T) {
			clients := storetest.New[*oauthv1.OAuthClient](oauthv1.Resource("oauthclients"))
			for _, address := range []string{"https://first", "https://second", "https://second"} {
				if err := ensureClients(t.Context(), clients, address, "", tt.several); err != nil {
					t.Fatal(err)
				}
			}
			got, err := clients.Get(t.Context(), client.Challenging)
			if err != nil || !slices.Equal(got.RedirectURIs, tt.want) {
				t.Errorf("got %q, %v, want %q", got.RedirectURIs, err, tt.want)
			}
		})
	}
}

func TestClientsLoseAddressesOfRemovedMaster(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := oauthv1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	remaining := []string{"https://192.0.2.1:8443/oauth/token/implicit", "https://192.0.2.3:84430/oauth/token/implicit", "https://example.com/"}
	// Only one of the clients exists.
	objects := dynamicfake.NewSimpleDynamicClient(scheme, &oauthv1.OAuthClient{
		ObjectMeta: metav1.ObjectMeta{Name: client.Challenging}, RedirectURIs: slices.Insert(slices.Clone(remaining), 1, "https://192.0.2.3:8443/oauth/token/implicit"),
	})
	for range 2 { // the second call removes nothing
		if err := RemoveServer(t.Context(), objects, "https://192.0.2.3:8443"); err != nil {
			t.Fatal(err)
		}
	}
	object, err := objects.Resource(oauthv1.GroupVersion.WithResource("oauthclients")).Get(t.Context(), client.Challenging, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := unstructured.NestedStringSlice(object.Object, "redirectURIs"); err != nil || !slices.Equal(got, remaining) {
		t.Errorf("got %q, %v, want %q", got, err, remaining)
	}
}
