package masters

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// late is a route that is created while a master's API server is unavailable.
const late = `{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: late}, spec: {host: late.example.com, to: {kind: Service, name: app}}}`

// checkNodeWithoutAPI stops a master's etcd, which also stops its API server. The master's kubelet
// and router must then use the other masters. The kubelet must renew its lease and run a new pod,
// and the router must serve a new route.
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
	waitRoute(master, "late.example.com")
	if _, err := master.TryOC("get", "nodes"); err == nil {
		t.Error("the API server of the master serves without etcd")
	}
	if check := other.Slipway("upgrade", "--check"); check.Code != 1 || !strings.Contains(check.Stdout, "etcd member second") {
		t.Errorf("slipway upgrade --check without a member: %+v", check)
	}
	master.MustSlipway("master", "start", "etcd")
	master.WaitReady()
	other.OC("delete", "pod/late", "route/late")
}

// checkCommands checks that commands reach a pod on the node, and the node itself, through each
// master.
func checkCommands(t *testing.T, masters map[string]*kit.Cluster, node *kit.Cluster) {
	for name, master := range masters {
		t.Run(name, func(t *testing.T) {
			master := master.For(t)
			pod := strings.TrimSpace(master.OC("get", "pods", "-l", "app=app", "--field-selector", "spec.nodeName=worker", "-o", "name"))
			if got := master.OC("exec", pod, "--", "cat", "/tmp/www/index.html"); got != "I am here\n" {
				t.Errorf("oc exec printed %q", got)
			}
			if got := master.OC("logs", pod); got != "started\n" {
				t.Errorf("oc logs printed %q", got)
			}
			line, err := master.StartOC("port-forward", pod, ":8080").ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			client := http.Client{Transport: &http.Transport{DialContext: master.Dial, DisableKeepAlives: true}}
			master.WaitFor("page through oc port-forward", func(ctx context.Context) error {
				_, err := kit.Fetch(ctx, &client, "http://"+strings.Fields(line)[2]+"/", "I am here")
				return err
			})
			file := node.Path("node", "membership.json")
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := master.OC("debug", "node/worker", "--image="+kit.ToolsImage, "--", "chroot", "/host", "cat", file); got != string(want) {
				t.Errorf("oc debug printed %q, want %q", got, want)
			}
		})
	}
}
