package volumeplugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/kubernetes/pkg/volume"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

const (
	// nameTimeout is how long callers wait for a name. Callers often hold a lock of the kubelet or
	// the controller. A slower driver call continues, and later callers receive its response.
	nameTimeout = 2 * time.Second
	// errorTTL is how long an error is cached before the driver is called again.
	errorTTL = time.Second
	// maxNames is the maximum number of cached results.
	maxNames = 10000
)

// GetVolumeName returns the volume's storage name. It is the second part of the volume's unique
// name, which is used by the kubelet, the attach-detach controller and the node's status. Detach
// receives it as well.
//
// The driver is called once per volume. The result does not change when the driver is updated,
// because it identifies volumes that are in use. Earlier versions named an inline volume after the
// volume in the pod. The kubelet keeps a name from an earlier version only until the device is
// unmounted. The controller cannot assign this name to one of the pods' volumes, so it uses the
// current name.
func (p *plugin) GetVolumeName(spec *volume.Spec) (string, error) {
	source, err := sourceOf(spec)
	if err != nil {
		return "", err
	}
	vol := source.volume(spec.Name())
	return p.nameCache.get(p.key(vol, source.inline), func() (string, error) {
		driver, err := p.inUse()
		if err != nil {
			return "", err
		}
		name, named, err := driver.VolumeName(context.Background(), vol)
		if err == nil && source.inline && !named {
			name = inlineName(vol)
		}
		return name, err
	})
}

// inlineName returns the storage name of a pod's inline volume that the driver does not name. The
// volume's name in the pod is not sufficient, because the pod's author chooses it. If it were the
// name of another project's inline volume or of a PersistentVolume, the pod would receive the
// content of that volume.
func inlineName(vol flexvolume.Volume) string {
	encoded, err := json.Marshal([]any{vol.FSType, vol.Options})
	if err != nil {
		panic(err) // strings can always be encoded
	}
	sum := sha256.Sum256(encoded)
	return vol.Name + "-" + hex.EncodeToString(sum[:8])
}

// key returns a cache key that consists of the driver's name and its input for getvolumename.
// inline distinguishes an inline volume from a PersistentVolume with the same name and options.
func (p *plugin) key(vol flexvolume.Volume, inline bool) string {
	encoded, err := json.Marshal(vol)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return fmt.Sprint(p.name, inline, string(encoded))
}

// nameCache caches the drivers' responses to getvolumename.
type nameCache struct {
	mu      sync.Mutex
	results map[string]*nameResult
}

// nameResult is the result of one call, which might still be running. name and err are valid after
// done is closed.
type nameResult struct {
	start  time.Time
	done   chan struct{}
	name   string
	err    error
	expiry time.Time // when an error expires
	// untilUnmount means that the name applies until its device is unmounted.
	untilUnmount bool
}

func newNameCache() *nameCache { return &nameCache{results: map[string]*nameResult{}} }

// get returns the result for key. If there is no result, it calls fetch. Concurrent callers share
// one call.
func (n *nameCache) get(key string, fetch func() (string, error)) (string, error) {
	a := n.start(key, fetch)
	// Wait only for the remainder of nameTimeout since the call started, because the waits of
	// successive callers must not add up.
	wait := time.NewTimer(time.Until(a.start.Add(nameTimeout)))
	defer wait.Stop()
	select {
	case <-a.done:
		return a.name, a.err
	default:
	}
	select {
	case <-a.done:
		return a.name, a.err
	case <-wait.C:
		return "", fmt.Errorf("get volume name: getvolumename has been running for %s", time.Since(a.start).Round(time.Second))
	}
}

// start returns the result for key. If there is no result, it starts a call.
func (n *nameCache) start(key string, fetch func() (string, error)) *nameResult {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.results[key]; a != nil && !a.expired() {
		return a
	}
	n.evict()
	a := &nameResult{start: time.Now(), done: make(chan struct{})}
	n.results[key] = a
	// This goroutine ends no later than the driver's deadline.
	go func() {
		defer close(a.done)
		a.name, a.err = fetch()
		a.expiry = time.Now().Add(errorTTL)
	}()
	return a
}

// lookup returns the name for key if it is cached.
func (n *nameCache) lookup(key string) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.results[key]
	if a == nil || !a.isDone() || a.err != nil {
		return "", false
	}
	return a.name, true
}

// set stores a name that was determined before a restart. If untilUnmount is true, the name applies
// until its device is unmounted.
func (n *nameCache) set(key, name string, untilUnmount bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.results[key] != nil {
		return
	}
	n.evict()
	a := &nameResult{done: make(chan struct{}), name: name, untilUnmount: untilUnmount}
	close(a.done)
	n.results[key] = a
}

// deviceUnmounted removes the results whose name applies until its device is unmounted.
func (n *nameCache) deviceUnmounted(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.results, func(_ string, a *nameResult) bool { return a.untilUnmount && a.name == name })
}

// evict removes results until another result fits into the cache.
func (n *nameCache) evict() {
	for key, a := range n.results {
		if len(n.results) < maxNames {
			return
		}
		if a.isDone() {
			delete(n.results, key)
		}
	}
}

func (a *nameResult) isDone() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

func (a *nameResult) expired() bool { return a.isDone() && a.err != nil && time.Now().After(a.expiry) }
