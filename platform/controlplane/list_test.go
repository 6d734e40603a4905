package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/platform/table"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// BenchmarkLists lists ConfigMaps and Routes through the API server, with etcd and a client as in a
// cluster. The ConfigMaps named large are as long as a Route in JSON. Run:
//
//	go test ./platform/controlplane -run '^$' -bench Lists
func BenchmarkLists(b *testing.B) {
	client := serveAPI(b)
	const object = `{"metadata": {"name": "object-%d", "labels": {"kind": %q}}, `
	for _, kind := range []struct{ name, path, body string }{
		{"ConfigMap", "/api/v1/namespaces/default/configmaps", object + `"data": {"host": "www.example.com"}}`},
		{"ConfigMap-large", "/api/v1/namespaces/kube-system/configmaps", object + `"data": {"host": "` + strings.Repeat("x", 700) + `"}}`},
		{"Route", "/apis/route.openshift.io/v1/namespaces/default/routes", object + `"spec": {"host": "www.example.com", "to": {"name": "web"}}}`},
	} {
		const count = 10_000
		for number := range count {
			body := fmt.Appendf(nil, kind.body, number, kind.name)
			if err := client.Post().AbsPath(kind.path).SetHeader("Content-Type", "application/json").Body(body).Do(b.Context()).Error(); err != nil {
				b.Fatal(err)
			}
		}
		for _, limit := range []int{100, count} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, limit), func(b *testing.B) {
				for b.Loop() {
					list, err := client.Get().AbsPath(kind.path).Param("limit", fmt.Sprint(limit)).DoRaw(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					b.SetBytes(int64(len(list)))
				}
			})
		}
	}
}

// serveAPI runs etcd and the API server until the test ends. It returns an administrator's client.
func serveAPI(t testing.TB) clientrest.Interface {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	configuration := fmt.Sprintf("{apiVersion: v1, kind: MasterConfig, servingInfo: {bindAddress: %q}, etcdConfig: {address: %q, peerAddress: %q}}",
		strings.Replace(componenttest.UnusedAddress(t), "127.0.0.1", "0.0.0.0", 1), componenttest.UnusedAddress(t), componenttest.UnusedAddress(t))
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := host.Load(t.TempDir(), file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(h.RunDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	gates, err := h.ControlPlaneGates()
	if err == nil {
		err = kube.Globals(gates)
	}
	if err == nil {
		err = h.Prepare()
	}
	if err != nil {
		t.Fatal(err)
	}
	controlPlane, err := New(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	needless := func(e table.Entry[*Host]) bool { return e.Name != "etcd" && e.Name != "apiserver" }
	entries, err := slices.DeleteFunc(Table(), needless).Build(controlPlane, nil)
	if err != nil {
		t.Fatal(err)
	}
	componenttest.Run(t, func(ctx context.Context, ready func()) error {
		return component.Run(ctx, entries, func(component.Event) {}, func(context.Context) { ready() })
	})
	config, err := h.AdminClient()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.CoreV1().RESTClient()
}
