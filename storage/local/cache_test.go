package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/storage/local"
)

// publishCache publishes a cache to a pod in a namespace and returns the cache's path.
func (n *node) publishCache(pod, project, cache string) string {
	n.t.Helper()
	target := n.target(pod)
	must[*csi.NodePublishVolumeResponse](n.t)(n.NodePublishVolume(context.Background(), &csi.NodePublishVolumeRequest{
		VolumeId: pod, TargetPath: target, VolumeCapability: mounted(""),
		VolumeContext: map[string]string{"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.namespace": project, "cache": cache, "size": "16Mi"},
	}))
	n.staged[pod] = true
	n.t.Cleanup(func() {
		if n.staged[pod] {
			n.unpublishCache(pod)
		}
	})
	return target
}

// unpublishCache undoes publishCache.
func (n *node) unpublishCache(pod string) {
	n.t.Helper()
	must[*csi.NodeUnpublishVolumeResponse](n.t)(n.NodeUnpublishVolume(context.Background(), &csi.NodeUnpublishVolumeRequest{VolumeId: pod, TargetPath: n.target(pod)}))
	delete(n.staged, pod)
}

// onlyCache returns the path of the only cache's image, without its extension.
func (n *node) onlyCache() string {
	n.t.Helper()
	paths, err := filepath.Glob(filepath.Join(n.dir, "data", "volumes", "hash-*.json"))
	if err != nil || len(paths) != 1 {
		n.t.Fatalf("there are %q, %v", paths, err)
	}
	return paths[0][:len(paths[0])-len(".json")]
}

func TestCacheOutlivesPods(t *testing.T) {
	n := start(t, t.TempDir())
	first := n.publishCache("csi-1", "red", "uid")
	if err := write(filepath.Join(first, "layer"), 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := write(filepath.Join(first, "more"), 32<<20); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing 32 MiB into 16: %v, want %v", err, unix.ENOSPC)
	}
	if stats, err := n.NodeGetVolumeStats(context.Background(), &csi.NodeGetVolumeStatsRequest{VolumeId: "csi-1", VolumePath: first}); err != nil || stats.GetUsage()[0].GetUsed() < 1<<20 {
		t.Errorf("the reported usage of the cache is %v, %v", stats, err)
	}
	has := func(target string) bool {
		_, err := os.Stat(filepath.Join(target, "layer"))
		return err == nil
	}
	if !has(n.publishCache("csi-2", "red", "uid")) {
		t.Error("a concurrent pod has another cache")
	}
	n.unpublishCache("csi-1")
	n.unpublishCache("csi-2")
	if has(n.publishCache("csi-3", "blue", "uid")) {
		t.Error("a pod in another namespace has the cache")
	}
	n.unpublishCache("csi-3")
	n.driver.Stop()
	n = start(t, n.dir)
	if !has(n.publishCache("csi-4", "red", "uid")) {
		t.Error("the next pod does not have the cache")
	}
	if resp := must[*csi.ListVolumesResponse](t)(n.ListVolumes(context.Background(), &csi.ListVolumesRequest{})); len(resp.GetEntries()) > 0 {
		t.Errorf("caches are listed as volumes: %v", resp)
	}
}

func TestCacheInUseSurvivesFailedPublish(t *testing.T) {
	n := start(t, t.TempDir())
	first := n.publishCache("csi-1", "red", "uid")
	if err := write(filepath.Join(first, "layer"), 1<<20); err != nil {
		t.Fatal(err)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := write(blocked, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := n.NodePublishVolume(context.Background(), &csi.NodePublishVolumeRequest{
		VolumeId: "csi-2", TargetPath: filepath.Join(blocked, "target"), VolumeCapability: mounted(""),
		VolumeContext: map[string]string{"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.namespace": "red", "cache": "uid", "size": "16Mi"},
	}); err == nil {
		t.Error("a cache is published at an invalid path")
	}
	n.unpublishCache("csi-1")
	if _, err := os.Stat(filepath.Join(n.publishCache("csi-3", "red", "uid"), "layer")); err != nil {
		t.Errorf("content of the cache while it was in use: %v", err)
	}
}

func TestUnusableCacheIsRecreated(t *testing.T) {
	n := start(t, t.TempDir())
	target := n.publishCache("csi-1", "red", "uid")
	if err := write(filepath.Join(target, "layer"), 1<<20); err != nil {
		t.Fatal(err)
	}
	n.unpublishCache("csi-1")
	image := n.onlyCache() + ".img"
	if err := os.Truncate(image, 4096); err != nil {
		t.Fatal(err)
	}
	target = n.publishCache("csi-2", "red", "uid")
	if _, err := os.Stat(filepath.Join(target, "layer")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("content of the damaged cache remains: %v", err)
	}
	if err := write(filepath.Join(target, "layer"), 1<<20); err != nil {
		t.Errorf("the new cache: %v", err)
	}
	n.unpublishCache("csi-2")
	// A pod starts even if there is no disk space for a cache.
	if err := errors.Join(os.Remove(image), os.MkdirAll(filepath.Join(image, "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	target = n.publishCache("csi-3", "red", "uid")
	if err := write(filepath.Join(target, "layer"), 1); !errors.Is(err, unix.EROFS) {
		t.Errorf("instead of a cache: %v, want %v", err, unix.EROFS)
	}
}

func TestCollectCaches(t *testing.T) {
	var driver *local.Driver
	n := start(t, t.TempDir(), func(d *local.Driver) { driver = d })
	cache := local.Cache{Namespace: "red", Name: "uid"}
	names := map[local.Cache]bool{cache: true}
	for _, tt := range []struct {
		name       string
		unused     time.Duration
		references map[local.Cache]bool
		inUse      bool
		remains    bool
	}{
		{"just used", time.Minute, nil, false, true},
		{"named", 2 * time.Hour, names, false, true},
		{"not referenced", 2 * time.Hour, nil, false, false},
		{"not used for weeks", 15 * 24 * time.Hour, names, false, false},
		{"in use", 15 * 24 * time.Hour, nil, true, true},
	} {
		n.publishCache("csi-1", cache.Namespace, cache.Name)
		if !tt.inUse {
			n.unpublishCache("csi-1")
		}
		record := n.onlyCache() + ".json"
		content, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		content = regexp.MustCompile(`"used": "[^"]*"`).ReplaceAll(content, []byte(`"used": "`+time.Now().Add(-tt.unused).Format(time.RFC3339)+`"`))
		if err := os.WriteFile(record, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := driver.CollectCaches(tt.references); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if _, err := os.Stat(record); (err == nil) != tt.remains {
			t.Errorf("%s: %v, want it to remain: %t", tt.name, err, tt.remains)
		}
	}
}
