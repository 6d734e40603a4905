package ansible

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// The playbooks add a master and an etcd member to a running cluster, according to sections 2.4,
// 3.6.1 and 4.3 of the Cluster Administration guide.
func TestPlaybooksAddMasters(t *testing.T) {
	first := kit.New(t, kit.Options{Segment: true, Node: "nodeName: master-0.example.com"})
	f := newFixture(t, first)
	f.addHost("master-0.example.com", first)
	first.Up()
	hosts := map[string]*kit.Host{}
	for _, name := range []string{"master-1.example.com", "etcd0.example.com"} {
		hosts[name] = first.NewHost(name, kit.Options{})
		f.addHost(name, hosts[name])
	}
	balancer := first.Neighbor()
	balancerDir := f.balancerDir(t)
	f.add("lb.example.com", balancer, "slipway_data_dir="+balancerDir)
	f.groups = map[string][]string{
		"masters": {"master-0.example.com"}, "nodes": {"master-0.example.com"}, "etcd": {"master-0.example.com"}, "lb": {"lb.example.com"},
		"new_masters": {"master-1.example.com"}, "new_nodes": {"master-1.example.com"},
	}
	f.variables["master-1.example.com"] += " openshift_node_group_name=node-config-master"
	f.run(t, "openshift-master/scaleup.yml")
	waitBalanced(t, first, balancer, "master-1.example.com")
	f.runUnchanged(t, "openshift-master/scaleup.yml")

	f.groups["new_etcd"] = []string{"etcd0.example.com"}
	refuseUnhealthyMember(t, f, first)
	f.run(t, "openshift-etcd/scaleup.yml")
	first.WaitFor("three members with a vote", func(context.Context) error {
		result := first.Slipway("etcd", "members")
		if strings.Count(result.Stdout, " voter ") != 3 {
			return fmt.Errorf("slipway etcd members: %s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
	waitHealthy(first)
	// The load balancer must find the new master without a playbook.
	waitBalanced(t, first, balancer, hosts["etcd0.example.com"].Address.String())
	first.WaitFor("label of the new master's group", func(context.Context) error {
		names, err := first.TryOC("get", "node", "-l", "node-role.kubernetes.io/master=true", "-o", "name")
		if err == nil && !strings.Contains(names, "node/master-1.example.com\n") {
			err = fmt.Errorf("nodes with the label are %q", names)
		}
		return err
	})
	restore(t, f, first)
}

// waitBalanced waits until the load balancer forwards connections to the named master.
func waitBalanced(t *testing.T, c *kit.Cluster, balancer *kit.Machine, name string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: balancer.Dial, DisableKeepAlives: true}}
	c.WaitFor("master "+name+" of the load balancer", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:9000/;csv", http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		stats, err := io.ReadAll(response.Body)
		for line := range strings.Lines(string(stats)) {
			if strings.HasPrefix(line, "mgmt8443,"+name+",") && strings.Contains(line, ",UP,") {
				return err
			}
		}
		return fmt.Errorf("the state is\n%s", stats)
	})
}

// restore tests that a playbook restores a snapshot of a cluster with three masters. Afterwards,
// the cluster has the objects in the snapshot and three etcd members.
func restore(t *testing.T, f *fixture, c *kit.Cluster) {
	t.Helper()
	f.groups["masters"] = []string{"master-0.example.com", "master-1.example.com", "etcd0.example.com"}
	f.groups["etcd"], f.groups["nodes"] = f.groups["masters"], f.groups["masters"]
	for _, name := range []string{"new_masters", "new_nodes", "new_etcd"} {
		delete(f.groups, name)
	}
	backups := filepath.Join(f.dir, "backup")
	f.settings = append(f.settings, "slipway_backup_dir="+backups)
	c.OC("create", "configmap", "before", "-n", "default")
	f.run(t, "backup.yml")
	c.OC("create", "configmap", "after", "-n", "default")
	saved, err := filepath.Glob(filepath.Join(backups, "etcd-*.db"))
	if err != nil || len(saved) != 1 {
		t.Fatalf("the backup has snapshots %q, %v", saved, err)
	}
	f.settings = append(f.settings, "slipway_snapshot="+saved[0])
	f.run(t, "openshift-etcd/restore.yml")
	if names := c.OC("get", "configmap", "-n", "default", "-o", "name"); !strings.Contains(names, "/before\n") || strings.Contains(names, "/after\n") {
		t.Errorf("the objects after the restore are %q", names)
	}
	c.WaitFor("three members with a vote after the restore", func(context.Context) error {
		result := c.Slipway("etcd", "members")
		if strings.Count(result.Stdout, " voter ") != 3 {
			return fmt.Errorf("slipway etcd members: %s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
	waitHealthy(c)
}

// refuseUnhealthyMember tests that the playbook does not add a member while another member is
// unhealthy.
func refuseUnhealthyMember(t *testing.T, f *fixture, c *kit.Cluster) {
	t.Helper()
	added := strings.Fields(c.MustSlipway("etcdctl", "member", "add", "lost", "--learner", "--peer-urls=https://192.0.2.99:7001"))
	settings := f.settings
	f.settings = append(slices.Clone(settings), "slipway_health_retries=1")
	r := f.try(t, "openshift-etcd/scaleup.yml")
	f.settings = settings
	if want := "repair or remove the members that are not healthy"; r.err == nil || !strings.Contains(r.output, want) {
		t.Errorf("got error %v, want %q:\n%s", r.err, want, r.output)
	}
	if result := c.Slipway("etcdctl", "member", "remove", added[1]); result.Code != 0 && !strings.Contains(result.Stderr, "not found") {
		t.Errorf("remove the member: %+v", result)
	}
}
