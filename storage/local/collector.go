package local

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// collectInterval is the interval between collections.
const collectInterval = time.Minute

// CacheCollector periodically deletes a node's unused caches; see Driver.CollectCaches.
type CacheCollector struct {
	Driver *Driver
	// Client is a client that has the permissions of the node's kubelet.
	Client kubernetes.Interface
}

// Name returns the component's name.
func (c *CacheCollector) Name() string { return "local-caches" }

// Run deletes unused caches until ctx is done.
func (c *CacheCollector) Run(ctx context.Context, ready func()) error {
	ready()
	ticker := time.NewTicker(collectInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := c.collect(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("cannot delete unused caches", "error", err, "retryAfter", collectInterval)
		}
	}
}

// collect deletes unused caches. It lists the caches that the node's pods reference.
func (c *CacheCollector) collect(ctx context.Context) error {
	pods, err := c.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", c.Driver.Node).String(), ResourceVersion: "0",
	})
	if err != nil {
		return fmt.Errorf("list pods of node %q: %w", c.Driver.Node, err)
	}
	inUse := map[Cache]bool{}
	for _, pod := range pods.Items {
		for _, volume := range pod.Spec.Volumes {
			if volume.CSI != nil && volume.CSI.Driver == DriverName {
				inUse[Cache{Namespace: pod.Namespace, Name: volume.CSI.VolumeAttributes[CacheKey]}] = true
			}
		}
	}
	return c.Driver.CollectCaches(inUse)
}
