package local

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/image"
	"github.com/slipway-platform/slipway/storage/local/loop"
)

// A cache is an inline volume of a pod. It is similar to an ephemeral volume, but its content is
// kept for the next pod. A cache is identified by its name and the pod's namespace. The kubelet
// sends the namespace, so a pod cannot access a cache in another namespace. Concurrent pods share a
// cache. A cache can be deleted at any time when no pod uses it. If the node has no space for the
// cache, an empty read-only directory is mounted instead.
const (
	// CacheKey is the volume attribute that contains the name of a cache.
	CacheKey = "cache"
	// namespaceKey is the volume attribute that contains the pod's namespace. The kubelet sets it.
	namespaceKey = "csi.storage.k8s.io/pod.namespace"
)

const (
	// unnamedCacheTTL and unusedCacheTTL limit how long a cache is kept after its last use.
	// unusedCacheTTL applies if the spec of a pod on the node names the cache. Otherwise,
	// unnamedCacheTTL applies.
	unnamedCacheTTL, unusedCacheTTL = time.Hour, 14 * 24 * time.Hour
	// maxCacheFraction is the maximum fraction of the disk that all unused caches together can
	// occupy.
	maxCacheFraction = 0.1
)

// Cache identifies a cache.
type Cache struct{ Namespace, Name string }

// recordName returns the Name field of the cache's record. The names that CreateVolume receives
// never have this form.
func (c Cache) recordName() string { return "cache/" + c.Namespace + "/" + c.Name }

// isCache reports whether the volume is a cache.
func (v volume) isCache() bool { return !v.Used.IsZero() }

// publishCache mounts a cache for a pod.
func (d *Driver) publishCache(ctx context.Context, request *csi.NodePublishVolumeRequest) error {
	target, capability := request.GetTargetPath(), request.GetVolumeCapability()
	attributes := maps.Clone(request.GetVolumeContext())
	namespace, name := attributes[namespaceKey], attributes[CacheKey]
	delete(attributes, CacheKey)
	if namespace == "" || capability.GetBlock() != nil || request.GetReadonly() {
		return status.Error(codes.InvalidArgument, "a cache needs the namespace of its pod, and must be neither read-only nor a block device")
	}
	content, err := contentOf([]*csi.VolumeCapability{capability})
	if err != nil {
		return err
	}
	v := volume{Name: Cache{namespace, name}.recordName(), State: stateReady, Filesystem: content, Used: time.Now()}
	if v.Size, v.Allocation, err = ephemeralParameters(attributes, content); err != nil {
		return err
	}
	d.cacheMu.Lock()
	defer d.cacheMu.Unlock()
	// An earlier call has already mounted the cache.
	if mounts, err := filesystem.MountsAt(target); err != nil || len(mounts) > 0 {
		return err
	}
	err = d.bindCache(v, target)
	if errors.Is(err, errCacheUnused) {
		err = d.mountCache(ctx, v, target, capability)
	}
	if err == nil {
		return nil
	}
	return errors.Join(filesystem.Unmount(target), filesystem.MountEmpty(target))
}

// errCacheUnused is the error for a cache that no pod uses.
var errCacheUnused = errors.New("the cache is not in use")

// bindCache publishes a cache that another pod is using. If no pod is using the cache, it returns
// errCacheUnused.
func (d *Driver) bindCache(v volume, target string) error {
	device, err := loop.Find(d.volumes.image(fileName(v.Name)))
	if err != nil {
		return err
	}
	if device == "" {
		return errCacheUnused
	}
	mounts, err := filesystem.MountsOf(device)
	if err != nil {
		return err
	}
	if len(mounts) == 0 {
		return errCacheUnused
	}
	if err := makeTarget(target, false); err != nil {
		return err
	}
	return filesystem.Bind(mounts[0].Mountpoint, target, false)
}

// mountCache mounts a cache that no pod is using. It recreates a cache that does not match the
// request or cannot be mounted.
func (d *Driver) mountCache(ctx context.Context, v volume, target string, capability *csi.VolumeCapability) error {
	file := fileName(v.Name)
	existing, err := d.volumes.load(file)
	if err == nil && existing.State == stateReady && existing.Size == v.Size && existing.Filesystem == v.Filesystem {
		if d.mount(ctx, file, v, target, capability) == nil {
			return d.volumes.save(file, v)
		}
	}
	if err := errors.Join(filesystem.Unmount(target), d.volumes.remove(file)); err != nil {
		return err
	}
	v.State = stateCreating
	if err := d.volumes.save(file, v); err != nil {
		return err
	}
	if err := d.createImage(ctx, file, v, contentSource{}); err != nil {
		return errors.Join(err, d.volumes.remove(file))
	}
	v.State = stateReady
	if err := d.volumes.save(file, v); err != nil {
		return err
	}
	return d.mount(ctx, file, v, target, capability)
}

// isCacheAt reports whether a cache is mounted at path. It checks the mount because a cache's
// volume handle has no record.
func (d *Driver) isCacheAt(path string) bool {
	mounts, err := filesystem.MountsAt(path)
	if err != nil || len(mounts) == 0 {
		return false
	}
	devices, err := loop.List(d.volumes.dir)
	return err == nil && slices.ContainsFunc(devices, func(device loop.Device) bool { return device.Path == mounts[len(mounts)-1].Source })
}

// CollectCaches deletes the caches that are not mounted and that meet one of these conditions:
//   - No pod has used the cache for unusedCacheTTL.
//   - inUse does not contain the cache, and no pod has used it for unnamedCacheTTL.
//   - The unmounted caches together exceed maxCacheFraction, and the cache is among the least
//     recently used caches.
//
// inUse contains the caches that pods on this node reference.
func (d *Driver) CollectCaches(inUse map[Cache]bool) error {
	d.cacheMu.Lock()
	defer d.cacheMu.Unlock()
	keep := map[string]bool{}
	for cache := range inUse {
		keep[fileName(cache.recordName())] = true
	}
	disk, err := filesystem.Measure(d.volumes.dir)
	if err != nil {
		return err
	}
	var errs []error
	type unused struct {
		file    string
		lastUse time.Time
	}
	var candidates []unused
	for file, v := range d.volumes.all(&errs) {
		if device, err := loop.Find(d.volumes.image(file)); v.isCache() && err == nil && device == "" {
			candidates = append(candidates, unused{file, v.Used})
		}
	}
	slices.SortFunc(candidates, func(a, b unused) int { return b.lastUse.Compare(a.lastUse) })
	budget := int64(float64(disk.Bytes) * maxCacheFraction)
	for _, cache := range candidates {
		usage, err := image.Allocated(d.volumes.image(cache.file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		budget -= usage
		age := time.Since(cache.lastUse)
		if age > unusedCacheTTL || age > unnamedCacheTTL && !keep[cache.file] || budget < 0 {
			budget += usage
			errs = append(errs, d.removeVolume(cache.file))
		}
	}
	return errors.Join(errs...)
}
