package buildcontroller

import (
	"context"
	"fmt"
	"slices"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// cacheDir is where our builder finds what its node keeps for the builds of one configuration.
const cacheDir = "/var/cache/slipway-builder"

// largestCache is the most that such a volume may hold, in bytes, whatever the build may take of its node's disk.
const largestCache = 1 << 40

// keepCache gives a build's pod the volume that its node keeps for the builds of its configuration: layers and sources of earlier ones. The driver gives a volume to pods of
// one project alone; a configuration that is made anew has a new one.
func (m *maker) keepCache(ctx context.Context, pod *corev1.Pod, build *buildv1.Build) error {
	name := instantiate.ConfigOf(build)
	if m.CacheDriver == "" || name == "" || build.Spec.Strategy.CustomStrategy != nil {
		return nil
	}
	config, err := m.configs.BuildConfigs(build.Namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if ready, err := m.nodesHaveCaches(ctx); err != nil || !ready {
		return err
	}
	limit := min(max(workspaceLimit(build.Spec.Resources.Limits).Value(), 1), largestCache)
	mounts{&pod.Spec}.add(cacheDir, false, corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: m.CacheDriver, VolumeAttributes: map[string]string{"cache": string(config.UID), "size": fmt.Sprint(limit)},
	}})
	return nil
}

// nodesHaveCaches reports whether all nodes have the driver, by the label of the Node. On a node
// without the driver, a pod would wait for it forever. The label stays while a node or its driver
// restarts, when the CSINode does not contain the driver: the pod then waits for the driver.
func (m *maker) nodesHaveCaches(ctx context.Context) (bool, error) {
	nodes, err := m.nodes.Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return false, fmt.Errorf("list nodes with drivers: %w", err)
	}
	return !slices.ContainsFunc(nodes.Items, func(node corev1.Node) bool {
		_, ok := node.Labels[m.CacheLabel]
		return !ok
	}), nil
}
