package pod

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/test/kit"
)

// guideLimitedPod is the pod in OpenShift 3.11 Cluster Administration, Limiting the Bandwidth
// Available to Pods, with an image that exists on the node.
const guideLimitedPod = `{
    "kind": "Pod",
    "spec": {
        "containers": [
            {
                "image": "` + kit.ToolsImage + `",
                "command": ["sleep", "infinity"],
                "name": "hello-openshift"
            }
        ]
    },
    "apiVersion": "v1",
    "metadata": {
        "name": "iperf-slow",
        "annotations": {
            "kubernetes.io/ingress-bandwidth": "10M",
            "kubernetes.io/egress-bandwidth": "10M"
        }
    }
}`

// queues counts the queues that limit the rate of a network device on the cluster's machine to the
// given number of bits per second.
func queues(c *kit.Cluster, bits uint64) (count int, err error) {
	err = c.Do(func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		for _, link := range links {
			qdiscs, err := netlink.QdiscList(link)
			if err != nil {
				return err
			}
			for _, qdisc := range qdiscs {
				if tbf, ok := qdisc.(*netlink.Tbf); ok && tbf.Rate*8 == bits {
					count++
				}
			}
		}
		return nil
	})
	return count, err
}

func waitQueues(c *kit.Cluster, bits uint64, want int) {
	c.WaitFor(fmt.Sprintf("%d queues with %d bits per second", want, bits), func(context.Context) error {
		got, err := queues(c, bits)
		if err == nil && got != want {
			err = fmt.Errorf("%d queues", got)
		}
		return err
	})
}

func TestBandwidthFollowsAnnotations(t *testing.T) {
	c := kit.Shared(t)
	if output, err := c.TryOCWithInput(guideLimitedPod, "create", "-f", "-"); err != nil {
		t.Fatal(output, err)
	}
	c.WaitPodRunning("iperf-slow")
	if got, err := queues(c, 10_000_000); got != 2 || err != nil {
		t.Errorf("the pod runs with %d limits, want 2; error %v", got, err)
	}
	c.OC("annotate", "pod", "iperf-slow", "kubernetes.io/ingress-bandwidth=30M", "--overwrite")
	waitQueues(c, 30_000_000, 1)
	waitQueues(c, 10_000_000, 1)
	c.OC("annotate", "pod", "iperf-slow", "kubernetes.io/egress-bandwidth-")
	waitQueues(c, 10_000_000, 0)
	if _, err := c.TryOC("annotate", "pod", "iperf-slow", "kubernetes.io/egress-bandwidth=10Mbit"); err == nil || !strings.Contains(err.Error(), `"10Mbit", must be a quantity of bits per second`) {
		t.Errorf("invalid limit: %v", err)
	}
	c.OC("delete", "pod", "iperf-slow", "--grace-period=1")
	waitQueues(c, 30_000_000, 0)
}
