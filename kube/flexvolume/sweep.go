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

// Sweeper unmounts, before kubelet starts, the devices that no pod's volume uses. Kubelet finds volumes again by the directories of pods; a
// device whose last pod had gone when kubelet was killed it would leave mounted for ever, and report as not in use, so that it would
// be detached under its mount.
type Sweeper struct {
	Registry    *engine.Registry
	KubeletRoot string
}

// Name is the part's name.
func (s *Sweeper) Name() string { return "flexvolume-sweep" }

// Run unmounts once, tells that it is ready, and waits for ctx. A device that cannot be unmounted is named in the log, and tried again at the next start; so
// is, by the driver's deadline, one whose driver hangs.
func (s *Sweeper) Run(ctx context.Context, ready func()) error {
	var work sync.WaitGroup
	defer work.Wait()
	used := s.used()
	for _, staged := range engine.StagedVolumes(s.KubeletRoot) {
		if used[staged.Driver+"/"+staged.Volume] {
			continue
		}
		work.Go(func() {
			if err := s.unstage(ctx, staged); err != nil {
				slog.Warn("unmount FlexVolume that no pod uses", "driver", staged.Driver, "volume", staged.Volume, "error", err)
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

func (s *Sweeper) unstage(ctx context.Context, staged engine.Staged) error {
	driver, err := s.Registry.InUse(staged.Driver)
	if err != nil {
		return err
	}
	// <root>/plugins/kubernetes.io/flexvolume/<driver>/{mounts,mounting}/<volume>
	marker := filepath.Join(filepath.Dir(filepath.Dir(staged.Dir)), "mounting", staged.Volume)
	return driver.Unstage(ctx, staged.Dir, marker)
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
