package hosts

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// waitServes waits until the pod "far" responds to requests from its own host.
func waitServes(host *kit.Host, address string) {
	host.WaitFor("response of pod far on its host", func(ctx context.Context) error {
		return fetchFar(ctx, host, "http://"+address+":8080/")
	})
}

// fetchFar requests a URL from a host. The response must be the page of the pod "far".
func fetchFar(ctx context.Context, host *kit.Host, url string) error {
	client := http.Client{Transport: &http.Transport{DialContext: host.Dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err == nil && !strings.Contains(string(page), "I am far") {
		err = fmt.Errorf("the page is %q", page)
	}
	return err
}

func TestJoinedHostOutlivesFailures(t *testing.T) {
	c, host := newServers(t)
	before := c.Pod("far")
	address := before.Status.PodIP

	host.Kill("node")
	waitServes(host, address)
	host.WaitFor("restart of the node process", func(context.Context) error {
		if status := host.Status(); !status.Ready {
			return fmt.Errorf("the status is %+v", status.Processes)
		}
		return nil
	})

	c.Kill("control-plane")
	waitServes(host, address)
	c.WaitFetch("near", "http://far."+c.Namespace+".svc/", "I am far")

	// The second host continues to work without a master.
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
