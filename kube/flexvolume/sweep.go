package flexvolume

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	engine "github.com/slipway-platform/slipway/storage/flexvolume"
)

// sweepWait is how long kubelet's start waits for drivers that unmount what nobody uses.
const sweepWait = 30 * time.Second

// Sweeper unmounts, before kubelet starts, the devices that no pod's volume uses, and detaches such volumes that the node has attached by itself.
// Kubelet finds volumes again by the directories of pods; a device whose last pod had gone when kubelet was killed it would leave mounted for
// ever, and report as not in use, so that it would be detached under its mount.
type Sweeper struct {
	Registry    *engine.Registry
	KubeletRoot string
	Attachments *Attachments
}

// Name is the part's name.
func (s *Sweeper) Name() string { return "flexvolume-sweep" }

// Run works once, tells that it is ready, and waits for ctx. A volume that cannot be released is named in the log, and tried again at the next
// start; so is, by the driver's deadline, one whose driver hangs.
func (s *Sweeper) Run(ctx context.Context, ready func()) error {
	var work sync.WaitGroup
	defer work.Wait()
	for a, dir := range s.unused() {
		work.Go(func() {
			if err := s.release(ctx, a, dir); err != nil {
				slog.Warn("release FlexVolume that no pod uses", "driver", a.driver, "volume", a.volume, "error", err)
			}
		})
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(sweepWait):
	case <-ctx.Done():
		return nil
	}
	ready()
	<-ctx.Done()
	return nil
}

// unused are the volumes to release, each with the directory where its device is, or was, mounted. The node of one that it has not attached by
// itself, and the directory of one that is not mounted, are empty.
func (s *Sweeper) unused() map[attachment]string {
	used := s.used()
	dirs := map[string]string{}
	unused := map[attachment]string{}
	for _, staged := range engine.StagedVolumes(s.KubeletRoot) {
		if key := staged.Driver + "/" + staged.Volume; !used[key] {
			dirs[key] = staged.Dir
			unused[attachment{driver: staged.Driver, volume: staged.Volume}] = staged.Dir
		}
	}
	for _, noted := range s.Attachments.all() {
		key := noted.driver + "/" + noted.volume
		if used[key] {
			continue
		}
		delete(unused, attachment{driver: noted.driver, volume: noted.volume})
		unused[noted] = dirs[key]
	}
	return unused
}

func (s *Sweeper) release(ctx context.Context, a attachment, dir string) error {
	if dir != "" {
		driver, err := s.Registry.InUse(a.driver)
		if err != nil {
			return err
		}
		// <root>/plugins/kubernetes.io/flexvolume/<driver>/{mounts,mounting}/<volume>
		marker := filepath.Join(filepath.Dir(filepath.Dir(dir)), "mounting", a.volume)
		if err := driver.Unstage(ctx, dir, marker); err != nil {
			return err
		}
	}
	if a.node == "" {
		return nil
	}
	_, err := s.Attachments.leave(a, func() error { return detach(ctx, s.Registry, a) })
	return err
}

// used are the volumes, as <driver>/<name in its storage>, that pods' directories tell of. One without a record, as of the in-tree plug-in, has
// the same name in both.
func (s *Sweeper) used() map[string]bool {
	used := map[string]bool{}
	dirs, _ := filepath.Glob(filepath.Join(s.KubeletRoot, "pods", "*", "volumes", "*", "*")) // the pattern is a good one
	for _, dir := range dirs {
		escaped, volume := filepath.Base(filepath.Dir(dir)), filepath.Base(dir)
		pod := filepath.Dir(filepath.Dir(filepath.Dir(dir)))
		var r record
		content, err := os.ReadFile(filepath.Join(pod, "plugins", escaped, volume+".json"))
		if err == nil && json.Unmarshal(content, &r) == nil && r.Name != "" {
			volume = r.Name
		}
		used[engine.UnescapeName(escaped)+"/"+volume] = true
	}
	return used
}
