package cli

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// counter is a discovery client that counts requests for all resources.
type counter struct {
	discovery.CachedDiscoveryInterface
	reads int
	err   error
}

func (c *counter) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	c.reads++
	return []*metav1.APIGroup{{}}, []*metav1.APIResourceList{{}}, c.err
}

func (*counter) Invalidate() {}

func TestResourcesAreReadOnce(t *testing.T) {
	server := &counter{err: &discovery.ErrGroupDiscoveryFailed{}}
	client := &resources{CachedDiscoveryInterface: server}
	read := func(want int) {
		t.Helper()
		if _, lists, _ := client.ServerGroupsAndResources(); len(lists) != 1 || server.reads != want {
			t.Errorf("%d lists after %d reads, want %d reads", len(lists), server.reads, want)
		}
	}
	read(1)
	read(2) // the first list was incomplete
	server.err = nil
	read(3)
	read(3)
	client.Invalidate()
	read(4)
}
