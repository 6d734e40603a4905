package image

import (
	"strings"
	"sync"
	"testing"

	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestOpenShiftNamesMapToPlatformImages(t *testing.T) {
	for name, want := range map[string]string{
		"openshift3/ose-egress-router":                              EgressRouterName,
		"registry.example.com/openshift3/ose-egress-router":         EgressRouterName,
		"registry.example.com:5000/openshift3/ose-egress-router:v3": EgressRouterName,
		"registry.example.com/openshift3/ose-egress-http-proxy":     EgressHTTPProxyName,
		"registry.example.com/openshift3/ose-egress-dns-proxy:v1":   EgressDNSProxyName,
		"registry.example.com/openshift3/ose-pod":                   PauseName,
		"openshift3/oauth-proxy":                                    OAuthProxyName,
		"registry.example.com/openshift/oauth-proxy:v1.1.0":         OAuthProxyName,
		"registry.example.com/openshift3/ose-descheduler":           DeschedulerName,
		EgressRouterName: EgressRouterName,
		PauseName:        "", // not an alias, because the kubelet finds this image itself
		"registry.example.com/openshift3/ose-egress-router@sha256:" + strings.Repeat("0", 64): "",
		"registry.example.com/mine/openshift3/ose-pod":                                        "",
		"registry.example.com/openshift3/ose-router":                                          "",
		"openshift3/hello": "",
		"Not A Name":       "",
	} {
		if got, ok := new(aliases).find(name); ok != (want != "") || ok && got != want {
			t.Errorf("%s: got %q, %t, want %q", name, got, ok, want)
		}
	}
}

func TestEgressRouterImagesAreCreatedOnDemand(t *testing.T) {
	f := newPullFixture(t)
	const short, long = "openshift3/ose-egress-router", "registry.example.com/openshift3/ose-egress-router:v3.11"
	status := func(name string) string {
		t.Helper()
		resp, err := f.client.ImageStatus(t.Context(), &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: name}})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetImage().GetId()
	}
	if id := status(short); id != "" {
		t.Fatalf("the image exists before a pod needs it: %s", id)
	}
	ids := make([]string, 4)
	var pulls sync.WaitGroup
	for i := range ids { // pods start at the same time
		pulls.Go(func() {
			var err error
			if ids[i], err = f.pull(t, []string{short, long}[i%2]); err != nil {
				t.Error(err)
			}
		})
	}
	pulls.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("got the images %q, want the same", ids)
		}
	}
	for _, name := range []string{short, long} {
		if id := status(name); id != EgressRouterName {
			t.Errorf("%s is %s", name, id)
		}
	}
	proxy, err := f.pull(t, "registry.example.com/openshift3/ose-egress-http-proxy")
	if err != nil || proxy == ids[0] {
		t.Errorf("the proxy is %s, error %v", proxy, err)
	}
}
