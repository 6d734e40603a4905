package hosts

import (
	"context"
	"net/http"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// waitServes waits until the pod "far" responds to requests from the host that it runs on.
func waitServes(host *kit.Host, address string) {
	host.WaitFor("response of pod far on its host", func(ctx context.Context) error {
		return fetchFar(ctx, host, "http://"+address+":8080/")
	})
}

// fetchFar requests a URL from a host. The response must be the page of the pod "far".
func fetchFar(ctx context.Context, host *kit.Host, url string) error {
	client := http.Client{Transport: &http.Transport{DialContext: host.Dial, DisableKeepAlives: true}}
	_, err := kit.Fetch(ctx, &client, url, "I am far")
	return err
}

func TestJoinedHostOutlivesFailures(t *testing.T) {
	c, host := newServers(t)
	before := c.Pod("far")
	address := before.Status.PodIP

	process := host.Status().PID("node")
	host.Kill("node")
	waitServes(host, address)
	host.WaitRestart("node", process)

	c.Kill("control-plane")
	waitServes(host, address)
	c.WaitFetch("near", "http://far."+c.Namespace+".svc/", "I am far")

	// The second host must continue to work without a master.
	c.Kill("slipway")
	waitServes(host, address)
	host.Kill("slipway")
	waitServes(host, address)
	c.Up()
	host.MustSlipway("up")
	waitNodeReady(c, second)
	c.WaitFetch("near", "http://far."+c.Namespace+".svc/", "I am far")
	if after := c.WaitPodRunning("far"); after.UID != before.UID || after.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the pod was restarted: %+v", after.Status.ContainerStatuses)
	}
}
