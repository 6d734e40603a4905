package oauth

import (
	"slices"
	"testing"

	oauthv1 "github.com/openshift/api/oauth/v1"

	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/store/storetest"
)

func TestClientsHaveTheAddressesOfAllMasters(t *testing.T) {
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
