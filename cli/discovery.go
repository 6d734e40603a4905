package cli

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// connection has the methods of the flags, but reads the server's resources from the cache on disk
// only once for each command. Upstream reads and parses the cache's 50 files three times: for the
// resource mapper, for short names and for categories.
type connection struct {
	*genericclioptions.ConfigFlags
	discovery func() (discovery.CachedDiscoveryInterface, error)
	mapper    func() (meta.RESTMapper, error)
}

// newConnection returns a connection that prints warnings to standard error.
func newConnection(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *connection {
	c := &connection{ConfigFlags: flags}
	c.discovery = sync.OnceValues(func() (discovery.CachedDiscoveryInterface, error) {
		client, err := flags.ToDiscoveryClient()
		if err != nil {
			return nil, err
		}
		return &resources{CachedDiscoveryInterface: client}, nil
	})
	warnings := printers.NewWarningPrinter(streams.ErrOut, printers.WarningPrinterOptions{Color: printers.AllowsColorOutput(streams.ErrOut)})
	c.mapper = sync.OnceValues(func() (meta.RESTMapper, error) {
		client, err := c.discovery()
		if err != nil {
			return nil, err
		}
		return restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(client), client, func(text string) { warnings.Print(text) }), nil
	})
	return c
}

// ToDiscoveryClient returns the connection's discovery client, which is always the same.
func (c *connection) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return c.discovery()
}

// ToRESTMapper returns the connection's mapper, which is always the same.
func (c *connection) ToRESTMapper() (meta.RESTMapper, error) { return c.mapper() }

// resources is a discovery client that keeps the complete list of groups and resources until it is
// invalidated.
type resources struct {
	discovery.CachedDiscoveryInterface
	mutex  sync.Mutex
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
}

// ServerGroupsAndResources returns all groups and resources. It does not cache an incomplete list.
func (r *resources) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.lists != nil {
		return r.groups, r.lists, nil
	}
	groups, lists, err := r.CachedDiscoveryInterface.ServerGroupsAndResources()
	if err == nil {
		r.groups, r.lists = groups, lists
	}
	return groups, lists, err
}

// Invalidate clears the cached list, so that the next call requests it from the server.
func (r *resources) Invalidate() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.groups, r.lists = nil, nil
	r.CachedDiscoveryInterface.Invalidate()
}
