package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/test/bench/host"
)

// drivers contains the benchmark's FlexVolume drivers. Both sides use the same drivers.
//
//go:embed drivers
var drivers embed.FS

const (
	attachable = "bench.example.com/attachable"
	hanging    = "bench.example.com/hanging"
	// hangLimit is the timeout for starting a pod while another driver hangs.
	hangLimit = time.Minute
)

// installDriver installs one of the drivers under the given name.
func installDriver(pluginDir, name, file string) (flexvolume.Installation, error) {
	content, err := drivers.ReadFile("drivers/" + file)
	if err != nil {
		return flexvolume.Installation{}, err
	}
	source, err := os.CreateTemp("", "slipway-bench-driver-")
	if err != nil {
		return flexvolume.Installation{}, fmt.Errorf("write driver: %w", err)
	}
	defer os.Remove(source.Name())
	_, err = source.Write(content)
	if err := errors.Join(err, source.Close()); err != nil {
		return flexvolume.Installation{}, fmt.Errorf("write driver: %w", err)
	}
	return flexvolume.Install(pluginDir, name, source.Name())
}

// measureVolumes measures pods with an attachable FlexVolume. It installs the drivers and removes
// them at the end.
func measureVolumes(ctx context.Context, h *host.Host, c *cluster, o options, result *round) (err error) {
	if _, err := installDriver(h.Path("drivers"), attachable, "attachable"); err != nil {
		return err
	}
	// Do not measure the first pod, because it also waits until the driver is discovered.
	if _, err := c.cycleVolume(ctx, "volume-first"); err != nil {
		return err
	}
	for number := range o.volumes {
		took, err := c.cycleVolume(ctx, fmt.Sprintf("volume-%d", number))
		if err != nil {
			return err
		}
		result.Volumes = append(result.Volumes, took)
	}
	result.Count = o.together
	before, err := h.Usage()
	if err != nil {
		return err
	}
	if result.Together, err = c.startTogether(ctx, o.together); err != nil {
		return err
	}
	after, err := h.Usage()
	if err != nil {
		return err
	}
	seconds := func(u host.Usage) float64 { return u.Seconds }
	result.TogetherSeconds = host.Total(after, seconds) - host.Total(before, seconds)
	if result.Hanging, err = measureHanging(ctx, h, c, o.volumes); err != nil {
		return err
	}
	_, err = flexvolume.Remove(h.Path("drivers"), attachable)
	return err
}

// measureHanging measures pods with an attachable FlexVolume while another driver hangs in its
// init. It stops after the first pod that takes longer than hangLimit.
func measureHanging(ctx context.Context, h *host.Host, c *cluster, count int) (all []time.Duration, err error) {
	dir := filepath.Join(h.Path("drivers"), flexvolume.EscapeName(hanging))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create driver directory: %w", err)
	}
	release := filepath.Join(dir, ".hang")
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		return nil, fmt.Errorf("write driver file: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := installDriver(h.Path("drivers"), hanging, "hanging"); err != nil {
		return nil, err
	}
	for number := range count {
		limit := time.AfterFunc(hangLimit, func() { _ = os.Remove(release) })
		took, err := c.cycleVolume(ctx, fmt.Sprintf("hanging-%d", number))
		limit.Stop()
		if err != nil {
			return nil, err
		}
		if all = append(all, min(took, hangLimit)); took >= hangLimit {
			break
		}
	}
	return all, nil
}

// volumePod returns a pod with its own attachable FlexVolume. The volume is named after the pod,
// because upstream treats volumes with the same name as the same volume.
func volumePod(name string) *corev1.Pod {
	pod := pausePod(name)
	pod.Spec.Volumes = []corev1.Volume{{Name: name, VolumeSource: corev1.VolumeSource{
		FlexVolume: &corev1.FlexVolumeSource{Driver: attachable, FSType: "ext4"},
	}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: name, MountPath: "/data"}}
	return pod
}

// cycleVolume starts a pod with a volume, deletes the pod, and waits until the volume is detached.
// Otherwise, the detach operation would disturb later measurements. It returns the result of
// startPod.
func (c *cluster) cycleVolume(ctx context.Context, name string) (time.Duration, error) {
	took, err := c.startPod(ctx, volumePod(name))
	if err != nil {
		return 0, err
	}
	if err := c.deletePod(ctx, name); err != nil {
		return 0, err
	}
	return took, c.waitDetached(ctx)
}

// waitDetached waits until no volume is attached to the node.
func (c *cluster) waitDetached(ctx context.Context) error {
	err := poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil || len(nodes.Items) == 0 {
			return false, err
		}
		status := nodes.Items[0].Status
		return len(status.VolumesAttached)+len(status.VolumesInUse) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("wait until volumes are detached: %w", err)
	}
	return nil
}

// startTogether starts a number of pods with one volume each, and then deletes them. It returns the
// time until all pods are running.
func (c *cluster) startTogether(ctx context.Context, count int) (time.Duration, error) {
	const group = "together"
	took, err := c.startMany(ctx, group, count, volumePod)
	if err != nil {
		return 0, err
	}
	if err := c.deleteMany(ctx, group); err != nil {
		return 0, err
	}
	return took, c.waitDetached(ctx)
}

// groupLabel is the label of pods that are started together. Its value is the name of the pods'
// group.
const groupLabel = "bench"

// startMany creates a group's pods in rapid succession. It returns the time until all pods are
// running. The pods are named GROUP-0, GROUP-1, and so on.
func (c *cluster) startMany(ctx context.Context, group string, count int, newPod func(name string) *corev1.Pod) (time.Duration, error) {
	pods := c.client.CoreV1().Pods("default")
	events, err := pods.Watch(ctx, metav1.ListOptions{LabelSelector: groupLabel + "=" + group})
	if err != nil {
		return 0, fmt.Errorf("watch pods: %w", err)
	}
	defer events.Stop()
	start := time.Now()
	for number := range count {
		pod := newPod(fmt.Sprintf("%s-%d", group, number))
		metav1.SetMetaDataLabel(&pod.ObjectMeta, groupLabel, group)
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return 0, fmt.Errorf("create pod %q: %w", pod.Name, err)
		}
	}
	running := map[string]bool{}
	for len(running) < count {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return 0, errors.New("watch pods: the watch ended")
			}
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning {
				running[pod.Name] = true
			}
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for pods: %d of %d run: %w", len(running), count, context.Cause(ctx))
		}
	}
	return time.Since(start), nil
}

// deleteMany deletes a group's pods and waits until they no longer exist.
func (c *cluster) deleteMany(ctx context.Context, group string) error {
	pods, selected := c.client.CoreV1().Pods("default"), metav1.ListOptions{LabelSelector: groupLabel + "=" + group}
	if err := pods.DeleteCollection(ctx, *metav1.NewDeleteOptions(1), selected); err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	err := poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		list, err := pods.List(ctx, selected)
		return err == nil && len(list.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait for the end of pods: %w", err)
	}
	return nil
}
