package platform

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/storage/local"
)

// sweepCaches is how often caches that are not kept any more are looked for.
const sweepCaches = time.Minute

// caches is the part of the local storage that removes the caches of the node that are not kept any more.
type caches struct {
	driver *local.Driver
	pods   kubernetes.Interface // with the rights of the node's kubelet
	node   string
}

// Name is the part's name.
func (c *caches) Name() string { return "local-caches" }

// Run removes until ctx ends.
func (c *caches) Run(ctx context.Context, ready func()) error {
	ready()
	tick := time.NewTicker(sweepCaches)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := c.sweep(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("old caches stay", "error", err, "again in", sweepCaches)
		}
	}
}

// sweep tells the driver which caches the node's pods name.
func (c *caches) sweep(ctx context.Context) error {
	pods, err := c.pods.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", c.node).String(), ResourceVersion: "0",
	})
	if err != nil {
		return fmt.Errorf("list pods of node %q: %w", c.node, err)
	}
	named := map[local.Cache]bool{}
	for _, pod := range pods.Items {
		for _, volume := range pod.Spec.Volumes {
			if volume.CSI != nil && volume.CSI.Driver == local.DriverName {
				named[local.Cache{Namespace: pod.Namespace, Name: volume.CSI.VolumeAttributes[local.CacheKey]}] = true
			}
		}
	}
	return c.driver.CollectCaches(named)
}
