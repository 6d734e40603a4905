package hosts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/test/kit"
)

// setNetworks replaces the pod networks in the master's configuration with networks such as
// "10.128.0.0/23:9", and restarts the master.
func setNetworks(t *testing.T, c *kit.Cluster, networks ...string) {
	t.Helper()
	content, err := os.ReadFile(c.MasterFile())
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	var entries []any
	for _, network := range networks {
		cidr, bits, _ := strings.Cut(network, ":")
		length := 0
		if _, err := fmt.Sscan(bits, &length); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, map[string]any{"cidr": cidr, "hostSubnetLength": length})
	}
	config["networkConfig"].(map[string]any)["clusterNetworks"] = entries
	if content, err = yaml.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.MasterFile(), content, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Kill("slipway")
	c.Up()
}

// insideNetworks returns the networks that a host does not masquerade.
func insideNetworks(host *kit.Host) (string, error) {
	var output []byte
	err := host.Do(func() (err error) {
		output, err = exec.Command("nft", "list", "set", "ip", "slipway", "inside").CombinedOutput()
		return err
	})
	return string(output), err
}

// TestPodNetworksChangeOnARunningCluster first tries to remove a network that contains a host's
// subnet. It then restores this network and adds another network.
func TestPodNetworksChangeOnARunningCluster(t *testing.T) {
	c, host := newServers(t)
	const first, hosts, added = firstNetwork + ":9", secondNetwork + ":8", "10.66.0.0/16:8"
	setNetworks(t, c, first, added)
	c.WaitFor("rejection of the networks", func(context.Context) error {
		result := c.Slipway("status")
		for _, want := range []string{"rejected networkConfig.clusterNetworks", `of host "` + second + `"`} {
			if !strings.Contains(result.Stdout, want) {
				return fmt.Errorf("want %q in\n%s%s", want, result.Stdout, result.Stderr)
			}
		}
		return nil
	})
	if list := c.OC("get", "clusternetworks"); !strings.Contains(list, first+", "+hosts) || strings.Contains(list, added) {
		t.Errorf("oc get clusternetworks:\n%s", list)
	}
	if networks, err := insideNetworks(host); err != nil || !strings.Contains(networks, secondNetwork) {
		t.Errorf("the second host has the networks %s: %v", networks, err)
	}

	setNetworks(t, c, first, hosts, added)
	c.WaitFor("networks", func(context.Context) error {
		list, err := c.TryOC("get", "clusternetworks")
		if err == nil && !strings.Contains(list, first+", "+hosts+", "+added) {
			err = fmt.Errorf("oc get clusternetworks:\n%s", list)
		}
		return err
	})
	c.WaitFor("added network on the second host", func(context.Context) error {
		networks, err := insideNetworks(host)
		if err == nil && !strings.Contains(networks, "10.66.0.0/16") {
			err = fmt.Errorf("it has the networks %s", networks)
		}
		return err
	})
	c.WaitFetch("far", fmt.Sprintf("http://%s:8080/", c.Pod("near").Status.PodIP), "I am near")
	if status := c.Slipway("status"); strings.Contains(status.Stdout, "rejected") {
		t.Errorf("slipway status:\n%s", status.Stdout)
	}
}
