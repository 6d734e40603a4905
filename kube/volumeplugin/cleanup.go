package volumeplugin

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// cleanupTimeout is how long the kubelet's start waits for drivers to unmount unused devices.
const cleanupTimeout = 30 * time.Second

// DeviceCleanup runs before the kubelet starts. It unmounts devices that no pod uses, and detaches
// their volumes if the node attached them itself. The kubelet finds volumes only through pod
// directories. It does not find a device whose last pod was deleted before the kubelet was killed.
// The device would stay mounted forever, and the kubelet would report it as not in use. The
// controller would then detach the device while it is mounted.
type DeviceCleanup struct {
	Registry    *flexvolume.Registry
	KubeletRoot string
	Attachments *Attachments
}

// Name returns the component's name.
func (s *DeviceCleanup) Name() string { return "flexvolume-cleanup" }

// Run cleans up once, calls ready, and waits until ctx is done. If a volume cannot be released, Run
// logs it and retries on the next start. A call to a hanging driver fails at its deadline.
func (s *DeviceCleanup) Run(ctx context.Context, ready func()) error {
	var work sync.WaitGroup
	defer work.Wait()
	for a, dir := range s.unused() {
		work.Go(func() {
			if err := s.release(ctx, a, dir); err != nil {
				slog.Warn("cannot release unused FlexVolume", "driver", a.driver, "volume", a.volume, "error", err)
			}
		})
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(cleanupTimeout):
	case <-ctx.Done():
		return nil
	}
	ready()
	<-ctx.Done()
	return nil
}

// unused maps each volume that must be released to the directory where its device is, or was,
// mounted. The attachment's node is empty if the node did not attach the volume itself. The
// directory is empty if nothing is mounted.
func (s *DeviceCleanup) unused() map[attachment]string {
	inUse := s.devicesInUse()
	dirs := map[string]string{}
	unused := map[attachment]string{}
	for _, device := range flexvolume.StagedVolumes(s.KubeletRoot) {
		if key := device.Driver + "/" + device.Volume; !inUse[key] {
			dirs[key] = device.Dir
			unused[attachment{driver: device.Driver, volume: device.Volume}] = device.Dir
		}
	}
	for _, a := range s.Attachments.list() {
		key := a.driver + "/" + a.volume
		if inUse[key] {
			continue
		}
		delete(unused, attachment{driver: a.driver, volume: a.volume})
		unused[a] = dirs[key]
	}
	return unused
}

func (s *DeviceCleanup) release(ctx context.Context, a attachment, dir string) error {
	if dir != "" {
		driver, err := s.Registry.InUse(a.driver)
		if err != nil {
			return err
		}
		// dir is <root>/plugins/kubernetes.io/flexvolume/<driver>/mounts/<volume>.
		marker := filepath.Join(filepath.Dir(filepath.Dir(dir)), "mounting", a.volume)
		if err := driver.Unstage(ctx, dir, marker); err != nil {
			return err
		}
	}
	if a.node == "" {
		return nil
	}
	_, err := s.Attachments.release(ctx, s.Registry, a)
	return err
}

// devicesInUse returns the volumes that pod directories use, as <driver>/<storage name>. If a
// volume has no record because the in-tree plugin mounted it, its name in the pod is also its
// storage name.
func (s *DeviceCleanup) devicesInUse() map[string]bool {
	inUse := map[string]bool{}
	// Ignore the error, because Glob fails only if the pattern is invalid.
	dirs, _ := filepath.Glob(filepath.Join(s.KubeletRoot, "pods", "*", "volumes", "*", "*"))
	for _, dir := range dirs {
		escaped, volume := filepath.Base(filepath.Dir(dir)), filepath.Base(dir)
		pod := filepath.Dir(filepath.Dir(filepath.Dir(dir)))
		var r record
		content, err := os.ReadFile(filepath.Join(pod, "plugins", escaped, volume+".json"))
		if err == nil && json.Unmarshal(content, &r) == nil && r.Name != "" {
			volume = r.Name
		}
		inUse[flexvolume.UnescapeName(escaped)+"/"+volume] = true
	}
	return inUse
}
