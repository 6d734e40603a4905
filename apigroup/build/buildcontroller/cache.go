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
	"github.com/slipway-platform/slipway/internal/buildpod"
)

// maxCacheBytes is the maximum size of a cache volume, in bytes, even if the ephemeral storage
// limit is larger.
const maxCacheBytes = 1 << 40

// mountCache adds a volume that stores the layers and sources of the configuration's earlier
// builds. The driver isolates different projects' volumes from each other. A recreated
// configuration uses a new volume. Custom builds have no cache volume. Other builds have none
// either while any node lacks the driver.
func (m *podFactory) mountCache(ctx context.Context, pod *corev1.Pod, build *buildv1.Build) error {
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
	if ok, err := m.allNodesHaveDriver(ctx); err != nil || !ok {
		return err
	}
	limit := min(max(workLimit(build.Spec.Resources.Limits).Value(), 1), maxCacheBytes)
	mounts{&pod.Spec}.add(buildpod.CacheDir, false, corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: m.CacheDriver, VolumeAttributes: map[string]string{"cache": string(config.UID), "size": fmt.Sprint(limit)},
	}})
	return nil
}

// allNodesHaveDriver reports whether all nodes have the driver's label. A pod on a node without the
// driver would wait for the driver forever. The label is checked instead of the CSINode, because
// the CSINode does not list the driver while the node or the driver restarts. In that case, the pod
// only has to wait for the end of the restart.
func (m *podFactory) allNodesHaveDriver(ctx context.Context) (bool, error) {
	nodes, err := m.nodes.Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return false, fmt.Errorf("list nodes with drivers: %w", err)
	}
	return !slices.ContainsFunc(nodes.Items, func(node corev1.Node) bool {
		_, ok := node.Labels[m.CacheLabel]
		return !ok
	}), nil
}
