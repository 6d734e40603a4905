// Package faults checks that a cluster with three masters loses no data while its hosts fail in
// random ways. `make soak` runs it. A seed reproduces a schedule:
//
//	go test ./test/faults -args -seed 7 -for 10m
package faults

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
	"github.com/slipway-platform/slipway/test/kit/register"
)

var (
	seed = flag.Uint64("seed", 1, "seed of the schedule")
	last = flag.Duration("for", time.Minute, "period in which faults start")
)

func TestMain(m *testing.M) { kit.Main(m) }

func TestRandomFaultsLoseNothing(t *testing.T) {
	first := kit.Start(t, kit.Options{Segment: true, Node: "nodeName: first"})
	hosts := map[string]*kit.Cluster{
		"first": first, "second": first.JoinMaster("second", kit.Options{}), "third": first.JoinMaster("third", kit.Options{DataDir: newDisk(t)}),
	}
	waitVoters(first)
	var servers []*rest.Config
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		servers = append(servers, hosts[name].Config)
	}
	registers := register.Start(t, servers, *seed)
	services, disk, workloads := startServices(hosts), startDisk(t, hosts), startWorkloads(t, hosts)

	s := newSchedule(*seed, slices.Sorted(maps.Keys(hosts)), kinds(), "third")
	for end := time.Now().Add(*last); time.Now().Before(end) && !t.Failed(); {
		f := s.next()
		t.Logf("%s  %s", time.Now().Format(time.TimeOnly), f)
		apply(t, f, hosts)
	}
	registers.Check(t)
	services.check(t, hosts)
	disk.check(t, hosts)
	workloads.check(t, hosts)
}

// apply applies a fault and waits until all hosts are ready again.
func apply(t *testing.T, f fault, hosts map[string]*kit.Cluster) {
	t.Helper()
	restore := func() {}
	if f.clock != "" {
		restore = shiftClock(t, hosts[f.clock], f.shift)
	}
	end := effects[f.kind](t, hosts[f.host])
	ended := time.After(f.lasts)
	if f.second != "" {
		hosts[f.second].Kill("control-plane")
	}
	<-ended
	end()
	restore()
	for _, host := range hosts {
		host.WaitFor("ready hosts after "+f.String(), func(context.Context) error {
			if status := host.Status(); !status.Ready {
				return fmt.Errorf("the status is %+v", status.Processes)
			}
			return nil
		})
	}
}

func waitVoters(c *kit.Cluster) {
	c.WaitFor("three voters", func(context.Context) error {
		if result := c.Slipway("etcd", "members"); strings.Count(result.Stdout, " voter ") != 3 {
			return fmt.Errorf("slipway etcd members: %s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
}

// services creates services through the API servers of all masters, which allocate the services'
// addresses.
type services struct {
	stop    context.CancelFunc
	running sync.WaitGroup

	mu           sync.Mutex
	acknowledged map[string]string // addresses of acknowledged services, keyed by service name
}

func startServices(hosts map[string]*kit.Cluster) *services {
	ctx, stop := context.WithCancel(context.Background())
	s := &services{stop: stop, acknowledged: map[string]string{}}
	for name, host := range hosts {
		s.running.Go(func() { s.create(ctx, name, host) })
	}
	return s
}

func (s *services) create(ctx context.Context, master string, c *kit.Cluster) {
	for i := 0; ctx.Err() == nil; i++ {
		object := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", master, i)},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		created, err := c.Client.CoreV1().Services("default").Create(attempt, object, metav1.CreateOptions{})
		cancel()
		if err == nil {
			s.mu.Lock()
			s.acknowledged[created.Name] = created.Spec.ClusterIP
			s.mu.Unlock()
		}
		select { // limit the rate, because each service adds rules to the proxies of all nodes
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// check fails the test if an acknowledged service is lost, or if an address was allocated twice.
func (s *services) check(t *testing.T, hosts map[string]*kit.Cluster) {
	t.Helper()
	s.stop()
	s.running.Wait()
	list, err := hosts["first"].Client.CoreV1().Services("default").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	stored, owners := map[string]string{}, map[string]string{}
	for _, service := range list.Items {
		if other, exists := owners[service.Spec.ClusterIP]; exists {
			t.Errorf("the services %s and %s have the address %s", other, service.Name, service.Spec.ClusterIP)
		}
		owners[service.Spec.ClusterIP], stored[service.Name] = service.Name, service.Spec.ClusterIP
	}
	for name, address := range s.acknowledged {
		if stored[name] != address {
			t.Errorf("service %s has the address %q, but %s was acknowledged", name, stored[name], address)
		}
	}
	t.Logf("%d services", len(s.acknowledged))
}
