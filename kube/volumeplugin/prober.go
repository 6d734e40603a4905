package volumeplugin

import (
	"errors"
	"sync"
	"time"

	"k8s.io/kubernetes/pkg/volume"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// Options configure a prober.
type Options struct {
	// InUse reports whether a driver's volumes might be in use. A removed driver and its last-good
	// copy are deleted only if InUse returns false and no pod waits for the driver. If InUse is
	// nil, drivers are kept for the lifetime of the process. The attach-detach controller requires
	// this, because it might have to detach volumes.
	InUse func(driver string) bool
	// Attachments records the volumes that the manager attaches. If it is nil, nothing is recorded.
	Attachments *Attachments
}

// useCheckInterval is the interval between checks of whether removed drivers are in use.
const useCheckInterval = 5 * time.Second

// NewProber returns the prober for one volume plugin manager. The registry must be running, and
// should be ready before the manager starts, so that volumes in use are reconstructed with their
// drivers.
func NewProber(registry *flexvolume.Registry, options Options) volume.DynamicPluginProber {
	if options.Attachments == nil {
		options.Attachments = &Attachments{}
	}
	return &prober{registry: registry, options: options, nameCache: newNameCache(), plugins: map[string]*plugin{}}
}

// prober compares the registry's drivers with the drivers that it has already reported.
type prober struct {
	registry  *flexvolume.Registry
	options   Options
	nameCache *nameCache

	mu         sync.Mutex
	generation uint64
	reported   bool
	plugins    map[string]*plugin // the manager's plugins
	removed    map[string]bool    // plugins whose driver is no longer installed
	lastCheck  time.Time
}

// Init is a no-op: the registry is already running.
func (p *prober) Init() error { return nil }

// Probe reports new drivers, and removed drivers that are not in use. The manager calls Probe for
// every plugin lookup while holding its lock. Probe is cheap if nothing has changed.
//
// A driver is reported after its first successful init, because the response states whether the
// driver supports attach. Later versions of the driver need no event, because the plugin reads the
// registry. The first probe also reports the plugin for drivers that cannot be used.
func (p *prober) Probe() ([]volume.ProbeEvent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.dropUnused()
	generation := p.registry.Generation()
	if p.reported && generation == p.generation {
		return nil, err
	}
	var events []volume.ProbeEvent
	if !p.reported {
		events = append(events, volume.ProbeEvent{Op: volume.ProbeAddOrUpdate, PluginName: pluginDirName, Plugin: newUnavailable(p)})
	}
	p.reported, p.generation = true, generation
	plugins := map[string]*plugin{}
	p.removed = map[string]bool{}
	for _, e := range p.registry.List() {
		if e.Driver == nil {
			continue
		}
		if e.State == flexvolume.StateRemoved {
			p.removed[e.Name] = true
		}
		if plugins[e.Name] = p.plugins[e.Name]; plugins[e.Name] == nil {
			plugins[e.Name] = &plugin{name: e.Name, registry: p.registry, nameCache: p.nameCache, attachments: p.options.Attachments}
			events = append(events, volume.ProbeEvent{Op: volume.ProbeAddOrUpdate, PluginName: e.Name, Plugin: plugins[e.Name]})
		}
	}
	for name := range p.plugins {
		if plugins[name] == nil {
			events = append(events, volume.ProbeEvent{Op: volume.ProbeRemove, PluginName: name})
		}
	}
	p.plugins = plugins
	return events, err
}

// hasPlugin reports whether the manager has a plugin for the driver.
func (p *prober) hasPlugin(driver string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plugins[driver] != nil
}

// dropUnused deletes from the registry the removed drivers that no volume uses. It keeps drivers
// that pods wait for, because their plugins return an error that explains that the driver was
// removed. Without a plugin, the kubelet only logs that there is no plugin.
func (p *prober) dropUnused() error {
	if len(p.removed) == 0 || p.options.InUse == nil || time.Since(p.lastCheck) < useCheckInterval {
		return nil
	}
	p.lastCheck = time.Now()
	var errs []error
	for name := range p.removed {
		if !p.options.InUse(name) && !p.plugins[name].usedSince(time.Now().Add(-2*useCheckInterval)) {
			errs = append(errs, p.registry.Forget(name))
		}
	}
	return errors.Join(errs...)
}
