package masters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// late is a route that is created while a master's API server is unavailable.
const late = `{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: late}, spec: {host: late.example.com, to: {kind: Service, name: app}}}`

// checkNodeWithoutAPI stops a master's etcd, which also stops its API server. Through the other
// masters, the master's kubelet renews its lease and runs a new pod, and its router serves a new
// route.
func checkNodeWithoutAPI(t *testing.T, master, other *kit.Cluster, w *writers) {
	master.MustSlipway("master", "stop", "etcd")
	start := time.Now()
	w.waitWrites(other, "first")
	other.WaitFor("renewal of the lease of node second", func(ctx context.Context) error {
		lease, err := other.Client.CoordinationV1().Leases("kube-node-lease").Get(ctx, "second", metav1.GetOptions{})
		if err == nil && lease.Spec.RenewTime.Before(&metav1.MicroTime{Time: start}) {
			err = fmt.Errorf("the lease was renewed at %v", lease.Spec.RenewTime)
		}
		return err
	})
	other.Apply(late + fmt.Sprintf(`
---
{apiVersion: v1, kind: Pod, metadata: {name: late}, spec: {nodeName: second, terminationGracePeriodSeconds: 1, containers: [{name: late, image: %q, command: [sleep, "10000"]}]}}
`, kit.ToolsImage))
	other.WaitPodRunning("late")
	client := http.Client{Transport: &http.Transport{DialContext: master.Dial, DisableKeepAlives: true}}
	master.WaitFor("response of the new route", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/", nil)
		if err != nil {
			return err
		}
		request.Host = "late.example.com"
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		if response.StatusCode != http.StatusOK {
			err = errors.New(response.Status)
		}
		return errors.Join(err, response.Body.Close())
	})
	if _, err := master.TryOC("get", "nodes"); err == nil {
		t.Error("the API server of the master serves without etcd")
	}
	if check := other.Slipway("upgrade", "--check"); check.Code != 1 || !strings.Contains(check.Stdout, "etcd member second") {
		t.Errorf("slipway upgrade --check without a member: %+v", check)
	}
	master.MustSlipway("master", "start", "etcd")
	waitReady(master)
	other.OC("delete", "pod/late", "route/late")
}
