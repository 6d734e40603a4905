package idle

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestProjectsShareConnections(t *testing.T) {
	limit := newConnLimit()
	acquire := func(project string, most int) (count int) {
		for count < most && limit.acquire(cache.ObjectName{Namespace: project, Name: fmt.Sprint(count / 300)}) {
			count++
		}
		return count
	}
	if got := acquire("first", 2*maxConnections); got != maxConnections {
		t.Errorf("a project holds %d connections, want %d", got, maxConnections)
	}
	for _, project := range []string{"second", "third"} {
		if got := acquire(project, 100); got != 100 {
			t.Errorf("project %s holds %d connections", project, got)
		}
	}
	if got := acquire("second", 2*maxConnections); got != maxConnections/3-100 {
		t.Errorf("the second project holds %d more connections, want its share", got)
	}
	if acquire("first", 1) != 0 {
		t.Error("the first project holds more connections than its share")
	}
	if !limit.acquire(cache.ObjectName{Namespace: "fourth"}) {
		t.Error("the fourth project holds no connection")
	}
	limit.release(cache.ObjectName{Namespace: "fourth"})
	if projects, _ := limit.projects.InUse(); projects != 3 {
		t.Error("a project without connections uses memory")
	}
}

// TestProjectsDoNotDelayEachOther wakes many service ports of one project, and one of another.
func TestProjectsDoNotDelayEachOther(t *testing.T) {
	client := fake.NewClientset(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.128.0.5"}}}, Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](80)}},
	})
	var mu sync.Mutex
	polls := map[string]int{}
	client.PrependReactor("list", "endpointslices", func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		polls[action.GetNamespace()]++
		return false, nil, nil
	})
	w := newWaker(&Proxy{Client: client})
	start := time.Now()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	var others sync.WaitGroup
	for i := range 200 {
		others.Go(func() {
			_, _ = w.endpoint(ctx, target{service: cache.ObjectName{Namespace: "other", Name: fmt.Sprint(i)}, protocol: corev1.ProtocolTCP})
		})
	}
	eventually.True(t, "the polls of a project are limited", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return polls["other"] >= pollBurst
	})
	address, err := w.endpoint(ctx, target{service: cache.ObjectName{Namespace: "shop", Name: "web"}, protocol: corev1.ProtocolTCP})
	if err != nil || address != netip.MustParseAddrPort("10.128.0.5:80") {
		t.Errorf("endpoint %v, %v", address, err)
	}
	others.Wait()
	mu.Lock()
	defer mu.Unlock()
	if most := pollBurst + int(pollRate*time.Since(start).Seconds()) + 1; polls["other"] < pollBurst || polls["other"] > most {
		t.Errorf("%d polls for a project, want %d to %d", polls["other"], pollBurst, most)
	}
}
