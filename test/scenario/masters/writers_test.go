package masters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// writers writes objects through each master and records the acknowledged writes. Each write starts
// after the response to the previous write through the same master.
type writers struct {
	masters map[string]*kit.Cluster
	stop    context.CancelFunc
	running sync.WaitGroup

	mu           sync.Mutex
	acknowledged map[string]string // maps the names of written ConfigMaps to the names of masters
	counts       map[string]int    // number of acknowledged writes, keyed by master
}

// startWriters starts a writer for each master.
func startWriters(masters map[string]*kit.Cluster) *writers {
	ctx, stop := context.WithCancel(context.Background())
	w := &writers{masters: masters, stop: stop, acknowledged: map[string]string{}, counts: map[string]int{}}
	for name, master := range masters {
		w.running.Go(func() { w.write(ctx, name, master) })
	}
	return w
}

func (w *writers) write(ctx context.Context, master string, c *kit.Cluster) {
	maps := c.Client.CoreV1().ConfigMaps("default")
	for i := 0; ctx.Err() == nil; i++ {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", master, i), Labels: map[string]string{"written": "true"}}}
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := maps.Create(attempt, object, metav1.CreateOptions{})
		cancel()
		if err == nil {
			w.mu.Lock()
			w.acknowledged[object.Name] = master
			w.counts[master]++
			w.mu.Unlock()
		}
		// Write only ten times per second, to leave most of the CPU time to the masters.
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// waitWrites waits until more writes through the named master are acknowledged. If no master has
// the name, it waits for writes through any master.
func (w *writers) waitWrites(c *kit.Cluster, master string) {
	before := w.count(master)
	c.WaitFor("acknowledged writes through "+master, func(context.Context) error {
		if after := w.count(master); after < before+5 {
			return fmt.Errorf("there are %d", after-before)
		}
		return nil
	})
}

// count returns the number of acknowledged writes through the named master. If no master has the
// name, it counts the writes through all masters.
func (w *writers) count(master string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, exists := w.masters[master]; exists {
		return w.counts[master]
	}
	return len(w.acknowledged)
}

// check stops the writers. It fails the test if an acknowledged write is missing on a master.
func (w *writers) check(t *testing.T) {
	t.Helper()
	w.stop()
	w.running.Wait()
	for name, master := range w.masters {
		w.checkMaster(t, name, master)
	}
	t.Logf("acknowledged writes: %v", w.counts)
}

// checkMaster fails the test if an acknowledged write is missing on the master.
func (w *writers) checkMaster(t *testing.T, name string, master *kit.Cluster) {
	t.Helper()
	var stored []string
	master.For(t).WaitFor("list of objects from master "+name, func(ctx context.Context) error {
		list, err := master.Client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{LabelSelector: "written=true"})
		if err != nil {
			return err
		}
		stored = nil
		for i := range list.Items {
			stored = append(stored, list.Items[i].Name)
		}
		return nil
	})
	slices.Sort(stored)
	for _, object := range slices.Sorted(maps.Keys(w.acknowledged)) {
		if _, ok := slices.BinarySearch(stored, object); !ok {
			t.Errorf("master %s has lost %s, which master %s acknowledged", name, object, w.acknowledged[object])
		}
	}
}
