// Package ansible tests the playbooks in packaging/ansible with Ansible itself. The hosts are
// network namespaces, which Ansible enters directly because the tests replace ssh with a script.
package ansible

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// passwordHash is the hash of the password `anna-secret`.
const passwordHash = "$apr1$ZO7eBgEK$DA9it.h.7xO3JFy/DrHEM1"

func TestMain(m *testing.M) { kit.Main(m) }

// The playbooks deploy a master behind a load balancer, and then add a node according to section
// 2.4 of the Cluster Administration guide.
func TestPlaybooksDeployAndAddHosts(t *testing.T) {
	other, version := kit.OtherVersion(t)
	master := kit.New(t, kit.Options{Segment: true, Node: "nodeName: master.example.com"})
	node := master.NewHost("node.example.com", kit.Options{})
	balancer := master.Neighbor()
	f := newFixture(t, master)
	balancerDir := f.balancerDir(t)
	f.addHost("master.example.com", master)
	f.addHost("node.example.com", node)
	f.add("lb.example.com", balancer, "slipway_data_dir="+balancerDir)
	f.settings = []string{
		"openshift_deployment_type=origin", "openshift_release=v3.11", "openshift_master_cluster_method=native",
		"openshift_master_cluster_hostname=" + balancer.Address.String(), "openshift_master_default_subdomain=apps.example.com",
		"openshift_use_crio=true",
		"openshift_portal_net=172.31.0.0/16", "osm_cluster_network_cidr=10.64.0.0/14", "os_sdn_network_plugin_name=redhat/openshift-ovs-networkpolicy",
	}
	f.groups = map[string][]string{
		"masters": {"master.example.com"}, "nodes": {"master.example.com"}, "etcd": {"master.example.com", "node.example.com"}, "lb": {"lb.example.com"},
	}
	r := f.try(t, "deploy_cluster.yml")
	if want := "host node.example.com: etcd runs on masters"; r.err == nil || r.changes != 0 || !strings.Contains(r.output, want) {
		t.Fatalf("got error %v, want %q:\n%s", r.err, want, r.output)
	}
	f.groups["etcd"] = []string{"master.example.com"}
	f.variables["master.example.com"] += " openshift_node_group_name=node-config-master-infra openshift_schedulable=true"
	r = f.run(t, "deploy_cluster.yml")
	if _, summary, _ := strings.Cut(r.output, "PLAY RECAP"); !strings.Contains(summary, `"variable openshift_use_crio": "lb.example.com, master.example.com"`) {
		t.Errorf("the summary does not name the variable without effect:\n%s", r.output)
	}
	master.Up() // Up also creates the API clients
	checkMaster(t, master, balancer)
	f.runUnchanged(t, "deploy_cluster.yml")

	f.groups["new_nodes"] = []string{"node.example.com"}
	f.variables["node.example.com"] += " openshift_node_group_name=node-config-gpu openshift_schedulable=false osm_use_cockpit=true"
	f.settings = append(f.settings, `openshift_node_groups=[{"name": "node-config-gpu", "labels": ["node-role.kubernetes.io/gpu=true"],`+
		` "edits": [{"key": "kubeletArguments.max-pods", "value": ["40"]}]}]`)
	if r := f.try(t, "openshift-node/scaleup.yml"); r.err == nil || !strings.Contains(r.output, "has no ConfigMap node-config-gpu") {
		t.Errorf("got error %v for a group that does not exist:\n%s", r.err, r.output)
	}
	f.run(t, "openshift-master/openshift_node_group.yml")
	f.run(t, "openshift-node/scaleup.yml")
	checkNode(t, master)
	checkCockpit(t, master, node.Machine)
	f.runUnchanged(t, "openshift-node/scaleup.yml")
	waitHealthy(master)

	addUsers(t, f, master)
	f.run(t, "redeploy-certificates.yml")
	upgrade(t, f, map[string]*kit.Host{"master.example.com": master, "node.example.com": node}, other, version)

	f.run(t, "adhoc/uninstall.yml", "--limit=node.example.com")
	master.WaitFor("removal of the node", func(context.Context) error {
		nodes, err := master.TryOC("get", "nodes", "-o", "name")
		if err == nil && nodes != "node/master.example.com\n" {
			err = fmt.Errorf("the nodes are %q", nodes)
		}
		return err
	})
	f.run(t, "adhoc/uninstall.yml")
	for _, path := range []string{master.DataDir, node.DataDir, filepath.Join(balancerDir, "lb")} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s remains: %v", path, err)
		}
	}
	f.runUnchanged(t, "adhoc/uninstall.yml")
}

// waitHealthy waits until `slipway status --cluster`, which verifies an installation, succeeds.
func waitHealthy(c *kit.Cluster) {
	c.WaitFor("healthy cluster", func(context.Context) error {
		if result := c.Slipway("status", "--cluster"); result.Code != 0 {
			return fmt.Errorf("slipway status --cluster: %s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
}

// checkMaster checks the inventory settings on the master, through the load balancer.
func checkMaster(t *testing.T, c *kit.Cluster, balancer *kit.Machine) {
	t.Helper()
	server := "https://" + balancer.Address.String() + ":8443"
	c.WaitFor("label of the master's group", func(context.Context) error {
		name, err := c.TryOC("get", "node", "--server="+server, "-l", "node-role.kubernetes.io/infra=true", "-o", "name")
		if err == nil && name != "node/master.example.com\n" {
			err = fmt.Errorf("nodes with the label are %q", name)
		}
		return err
	})
	view := c.MustSlipway("config", "view")
	for _, want := range []string{"subdomain: apps.example.com", server, "serviceNetworkCIDR: 172.31.0.0/16", "10.64.0.0/14", "networkPluginName: redhat/openshift-ovs-networkpolicy"} {
		if !strings.Contains(view, want) {
			t.Errorf("the configuration lacks the setting %q of the inventory:\n%s", want, view)
		}
	}
}

// checkNode checks that the new node has the settings of its host variables. The node reports its
// group's capacity when the group's configuration is in effect.
func checkNode(t *testing.T, c *kit.Cluster) {
	t.Helper()
	c.WaitFor("node of the group node-config-gpu", func(ctx context.Context) error {
		node, err := c.Client.CoreV1().Nodes().Get(ctx, "node.example.com", metav1.GetOptions{})
		if err != nil {
			return err
		}
		pods := node.Status.Capacity.Pods().String()
		if role := node.Labels["node-role.kubernetes.io/gpu"]; role != "true" || pods != "40" || !node.Spec.Unschedulable {
			return fmt.Errorf("the node has the label %q, a capacity of %s pods, and unschedulable %t", role, pods, node.Spec.Unschedulable)
		}
		return nil
	})
}

// addUsers tests that a playbook adds identity providers and users from the inventory to a running
// cluster.
func addUsers(t *testing.T, f *fixture, c *kit.Cluster) {
	t.Helper()
	f.settings = append(f.settings,
		`openshift_master_identity_providers=[{'name': 'inventory', 'login': 'true', 'challenge': 'true', 'kind': 'HTPasswdPasswordIdentityProvider'}]`,
		`openshift_master_htpasswd_users={'anna': '`+passwordHash+`'}`)
	f.run(t, "openshift-master/config.yml")
	f.runUnchanged(t, "openshift-master/config.yml")
	environment := []string{"KUBECONFIG=" + filepath.Join(f.dir, "anna.kubeconfig")}
	c.WaitFor("login of the new user", func(context.Context) error {
		result := c.SlipwayWith(environment, "oc", "login", "--insecure-skip-tls-verify", "-u", "anna", "-p", "anna-secret", c.APIURL())
		if result.Code != 0 {
			return fmt.Errorf("oc login: %s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
}

// upgrade tests that a playbook upgrades the hosts to another version. It installs small scripts
// that run the programs, instead of the programs themselves.
func upgrade(t *testing.T, f *fixture, hosts map[string]*kit.Host, other, version string) {
	t.Helper()
	script := func(program string) []byte { return []byte("#!/bin/sh\nexec '" + program + "' \"$@\"\n") }
	source, backups := filepath.Join(f.dir, "new-slipway"), filepath.Join(f.dir, "backup")
	if err := os.WriteFile(source, script(other), 0o755); err != nil {
		t.Fatal(err)
	}
	settings := f.settings
	f.settings = append(slices.Clone(settings), "slipway_source="+source, "slipway_backup_dir="+backups)
	for name := range f.variables {
		former := filepath.Join(f.dir, "slipway-"+name)
		if err := os.WriteFile(former, script(f.program), 0o755); err != nil {
			t.Fatal(err)
		}
		f.variables[name] += " slipway_program=" + former
	}
	before := map[string]int{}
	for name, host := range hosts {
		before[name] = host.Status().PID("node")
	}
	f.groups["nodes"] = append(f.groups["nodes"], f.groups["new_nodes"]...)
	delete(f.groups, "new_nodes")
	f.run(t, "upgrade.yml")
	f.settings = settings
	for name, host := range hosts {
		installed, err := os.ReadFile(filepath.Join(f.dir, "slipway-"+name))
		if err != nil || !bytes.Equal(installed, script(other)) {
			t.Errorf("the program of %s is not the new one: %v", name, err)
		}
		if status := host.Status(); status.PID("node") == before[name] || status.Version != version {
			t.Errorf("%s was not restarted with version %s: its version is %s", name, version, status.Version)
		}
	}
	for _, pattern := range []string{"slipway-master.example.com-*.tar.gz", "etcd-master.example.com-*.db"} {
		if saved, err := filepath.Glob(filepath.Join(backups, pattern)); err != nil || len(saved) != 1 {
			t.Errorf("the upgrade has saved %q, %v", saved, err)
		}
	}
}
