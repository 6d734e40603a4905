package measure

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

const (
	// joins is the number of measured joins. writes is the number of measured writes.
	joins, writes = 3, 300
	// joinAim is the target for the duration of a join, and startAim for the start of three masters
	// and two nodes. leaderAim is the target for a failover.
	joinAim, startAim, leaderAim = 4 * time.Second, time.Minute, 10 * time.Second
	// nodeMemory is the memory limit, in bytes, for a host that is only a node.
	nodeMemory = 220 << 20
)

func TestHosts(t *testing.T) {
	r := newTable("hosts")
	etcd := buildEtcd(t)
	first := kit.New(t, kit.Options{Segment: true, Node: "nodeName: first"})
	start := time.Now()
	first.Up()
	started := time.Since(start)
	alone := measureWrites(t, first, "alone")

	var durations []time.Duration
	var nodes []*kit.Host
	for i := range joins {
		host := first.NewHost(fmt.Sprintf("node-%d", i), kit.Options{})
		token := first.Token()
		start := time.Now()
		host.JoinWith(first.APIURL(), token)
		waitReady(first, fmt.Sprintf("node-%d", i))
		durations, nodes = append(durations, time.Since(start)), append(nodes, host)
	}
	r.aim(fmt.Sprintf("join of a node to Ready, median of %d", joins), median(durations), joinAim)
	router := first.Join("router", kit.Options{Router: true})
	nodes = append(nodes, router)

	masters := map[string]*kit.Cluster{"first": first}
	for _, name := range []string{"second", "third"} {
		start := time.Now()
		masters[name] = first.JoinMaster(name, kit.Options{})
		waitReady(first, name)
		took := time.Since(start)
		r.add("join of the "+name+" master to Ready", "%s", seconds(took))
		started += took
	}
	r.aim("start of three masters and two nodes, one after another", started+durations[0]+durations[1], startAim)
	first.WaitFor("three voters", func(context.Context) error {
		if result := first.Slipway("etcd", "members"); strings.Count(result.Stdout, " voter ") != 3 {
			return fmt.Errorf("slipway etcd members: %s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
	leaveAlone(*idle) // wait until the hosts release the memory that they used to start
	r.most("idle memory of a node (PSS)", float64(memory(t, nodes[0]).proportional)/(1<<20), nodeMemory>>20, "%.0f MiB")
	r.most("idle memory of a node with a router (PSS)", float64(memory(t, router).proportional)/(1<<20), nodeMemory>>20, "%.0f MiB")
	for _, name := range []string{"first", "second", "third"} {
		r.add("idle memory of the "+name+" of three masters (PSS)", "%s", mebibytes(memory(t, masters[name]).proportional))
	}

	three := measureWrites(t, first, "three")
	bareAlone, bareThree := measureEtcd(t, etcd, 1), measureEtcd(t, etcd, 3)
	r.add(fmt.Sprintf("write through the API, one member, median of %d", writes), "%s", seconds(median(alone)))
	r.add("write to a bare etcd, one member", "%s", seconds(median(bareAlone)))
	r.add("write through the API, three members", "%s", seconds(median(three)))
	r.add("write to a bare etcd, three members", "%s", seconds(median(bareThree)))
	difference := float64(median(three)-median(bareThree)) / float64(median(alone)-median(bareAlone))
	r.most("difference of three members to one member", difference, 1.15, "%.2f")

	for _, lease := range []string{"slipway-controllers", "kube-controller-manager", "kube-scheduler"} {
		r.aim("fail-over of "+lease+" after kill -9 of its host", failOver(t, masters, lease, (*kit.Cluster).KillEverything), leaderAim)
	}
	r.add("hand-over of slipway-controllers after a clean stop", "%s", seconds(failOver(t, masters, "slipway-controllers", func(c *kit.Cluster) {
		c.Signal("control-plane", syscall.SIGTERM)
	})))
	r.write(t)
	// Remove the nodes now. When the test ends, the masters stop first, and nodes cannot leave
	// without etcd's quorum.
	for _, node := range nodes {
		node.MustSlipway("leave")
	}
}

func waitReady(c *kit.Cluster, name string) {
	c.WaitFor("ready node "+name, func(ctx context.Context) error {
		node, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			return fmt.Errorf("the node is not ready")
		}
		return nil
	})
}

// measureWrites creates objects one after another.
func measureWrites(t *testing.T, c *kit.Cluster, prefix string) (durations []time.Duration) {
	t.Helper()
	maps := c.Client.CoreV1().ConfigMaps("default")
	for i := range writes {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i)}, Data: map[string]string{"value": value}}
		start := time.Now()
		if _, err := maps.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		durations = append(durations, time.Since(start))
	}
	return durations
}

// failOver stops the master that holds a lease, and starts the master again. It returns the time
// until another master holds the lease. A stop without a release of the lease must stop the whole
// host, because otherwise the restarted control plane renews the lease before the lease expires.
func failOver(t *testing.T, masters map[string]*kit.Cluster, lease string, stop func(*kit.Cluster)) time.Duration {
	t.Helper()
	holder := func(ctx context.Context, c *kit.Cluster) (string, error) {
		object, err := c.Client.CoordinationV1().Leases("kube-system").Get(ctx, lease, metav1.GetOptions{})
		if err != nil || object.Spec.HolderIdentity == nil {
			return "", err
		}
		name, _, _ := strings.Cut(*object.Spec.HolderIdentity, "_") // upstream appends a UUID
		return name, nil
	}
	former, err := holder(t.Context(), masters["first"])
	if err != nil {
		t.Fatal(err)
	}
	other := masters["first"]
	if former == "first" {
		other = masters["second"]
	}
	stop(masters[former])
	start := time.Now()
	other.WaitFor("another holder of "+lease, func(ctx context.Context) error {
		name, err := holder(ctx, other)
		if err == nil && (name == "" || name == former) {
			err = fmt.Errorf("it is %q", name)
		}
		return err
	})
	took := time.Since(start)
	masters[former].Up()
	return took
}
