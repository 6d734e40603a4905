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

// A cache is a volume that a pod brings, like an ephemeral one, and that the next pod finds as it was left. It is known by the project of
// its pods, which kubelet tells, and a name: no pod reaches a cache of another project. Pods that run together share it. Nothing is promised: a cache may be gone at any time at
// which no pod has it, and where the node has no room for it a pod gets an empty directory that cannot be written to.
const (
	// CacheKey is the attribute with the name of a cache.
	CacheKey = "cache"
	// namespaceKey is the project of the pod, as kubelet tells it.
	namespaceKey = "csi.storage.k8s.io/pod.namespace"
)

const (
	// cacheForgotten is how long a cache stays that no pod of the node names, and cacheUnused how long one stays that none has used.
	cacheForgotten, cacheUnused = time.Hour, 14 * 24 * time.Hour
	// cacheShare is the part of the disk that unused caches may take together.
	cacheShare = 0.1
)

// Cache is what a cache is known by.
type Cache struct{ Namespace, Name string }

// record is the name of its record, which no volume of CreateVolume has.
func (c Cache) record() string { return "cache/" + c.Namespace + "/" + c.Name }

// isCache tells caches from other volumes.
func (v volume) isCache() bool { return !v.Used.IsZero() }

// publishCache gives a pod the cache that it names.
func (d *Driver) publishCache(ctx context.Context, request *csi.NodePublishVolumeRequest) error {
	target, wanted := request.GetTargetPath(), request.GetVolumeCapability()
	given := maps.Clone(request.GetVolumeContext())
	namespace, name := given[namespaceKey], given[CacheKey]
	delete(given, CacheKey)
	if namespace == "" || wanted.GetBlock() != nil || request.GetReadonly() {
		return status.Error(codes.InvalidArgument, "a cache is a mounted volume that pods of a project write to")
	}
	content, err := contentOf([]*csi.VolumeCapability{wanted})
	if err != nil {
		return err
	}
	v := volume{Name: Cache{namespace, name}.record(), State: stateReady, Filesystem: content, Used: time.Now()}
	if v.Size, v.Allocation, err = ephemeralParameters(given, content); err != nil {
		return err
	}
	d.caching.Lock()
	defer d.caching.Unlock()
	if mounts, err := filesystem.At(target); err != nil || len(mounts) > 0 { // an earlier call has done it
		return err
	}
	err = d.shareCache(v, target)
	if errors.Is(err, errUnused) {
		err = d.mountCache(ctx, v, target, wanted)
	}
	if err == nil {
		return nil
	}
	return errors.Join(filesystem.Unmount(target), filesystem.MountEmpty(target))
}

// errUnused says that no pod has the cache.
var errUnused = errors.New("the cache is not in use")

// shareCache gives a pod a cache that another one has; errUnused says that none has it.
func (d *Driver) shareCache(v volume, target string) error {
	device, err := loop.Find(d.volumes.image(fileName(v.Name)))
	if err != nil {
		return err
	}
	if device == "" {
		return errUnused
	}
	mounts, err := filesystem.Of(device)
	if err != nil {
		return err
	}
	if len(mounts) == 0 {
		return errUnused
	}
	if err := makeTarget(target, false); err != nil {
		return err
	}
	return filesystem.Bind(mounts[0].Mountpoint, target, false)
}

// mountCache mounts a cache that nobody has. One that cannot be used as it is is made anew.
func (d *Driver) mountCache(ctx context.Context, v volume, target string, wanted *csi.VolumeCapability) error {
	file := fileName(v.Name)
	have, err := d.volumes.load(file)
	if err == nil && have.State == stateReady && have.Size == v.Size && have.Filesystem == v.Filesystem {
		if d.mount(ctx, file, v, target, wanted) == nil {
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
	if err := d.fill(ctx, file, v, origin{}); err != nil {
		return errors.Join(err, d.volumes.remove(file))
	}
	v.State = stateReady
	if err := d.volumes.save(file, v); err != nil {
		return err
	}
	return d.mount(ctx, file, v, target, wanted)
}

// isCacheAt tells whether a cache is at path. Its pods know it by handles of which there is no record.
func (d *Driver) isCacheAt(path string) bool {
	mounts, err := filesystem.At(path)
	if err != nil || len(mounts) == 0 {
		return false
	}
	devices, err := loop.List(d.volumes.dir)
	return err == nil && slices.ContainsFunc(devices, func(device loop.Device) bool { return device.Path == mounts[len(mounts)-1].Source })
}

// SweepCaches removes the caches that nobody has and that are not named any more, have not been used for long, or take too much of the disk together, the
// oldest first. named are those that pods of this node name.
func (d *Driver) SweepCaches(named map[Cache]bool) error {
	d.caching.Lock()
	defer d.caching.Unlock()
	keep := map[string]bool{}
	for cache := range named {
		keep[fileName(cache.record())] = true
	}
	disk, err := filesystem.Measure(d.volumes.dir)
	if err != nil {
		return err
	}
	var problems []error
	type unused struct {
		file string
		used time.Time
	}
	var idle []unused
	for file, v := range d.volumes.all(&problems) {
		if device, err := loop.Find(d.volumes.image(file)); v.isCache() && err == nil && device == "" {
			idle = append(idle, unused{file, v.Used})
		}
	}
	slices.SortFunc(idle, func(a, b unused) int { return b.used.Compare(a.used) })
	room := int64(float64(disk.Bytes) * cacheShare)
	for _, cache := range idle {
		taken, err := image.Allocated(d.volumes.image(cache.file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, err)
		}
		room -= taken
		age := time.Since(cache.used)
		if age > cacheUnused || age > cacheForgotten && !keep[cache.file] || room < 0 {
			room += taken
			problems = append(problems, d.removeVolume(cache.file))
		}
	}
	return errors.Join(problems...)
}
