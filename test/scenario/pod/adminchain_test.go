package pod

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// adminChain is the iptables chain in OpenShift 3.11 Cluster Administration, Using iptables Rules
// to Limit Access to External Resources.
const adminChain = "OPENSHIFT-ADMIN-OUTPUT-RULES"

// onMachine runs a command in the network namespace of the cluster's machine.
func onMachine(c *kit.Cluster, command string) (output string, err error) {
	err = c.Do(func() error {
		data, err := exec.Command("sh", "-c", command).CombinedOutput()
		output = string(data)
		if err != nil {
			err = fmt.Errorf("%s: %w: %s", command, err, data)
		}
		return err
	})
	return output, err
}

// waitJump waits until the rules contain a jump to the chain for packets from pods.
func waitJump(c *kit.Cluster) {
	c.WaitFor("rule that jumps to the chain", func(context.Context) error {
		rules, err := onMachine(c, "nft list chain ip filter FORWARD")
		if err == nil && strings.Count(rules, "jump "+adminChain) != 1 {
			err = fmt.Errorf("the rules are\n%s", rules)
		}
		return err
	})
}

func TestRulesOfTheAdministratorApplyToOutgoingTraffic(t *testing.T) {
	p := newProjects(t)
	newOutside(t, p.Cluster)
	run := func(command string) string {
		t.Helper()
		output, err := onMachine(p.Cluster, command)
		if err != nil {
			t.Fatal(err)
		}
		return output
	}
	waitExternal(p.Cluster, "203.0.113.1", "203.0.113.1")
	t.Cleanup(func() { run("nft flush chain ip filter " + adminChain) })
	if chain := run("nft list chain ip filter " + adminChain); strings.Contains(chain, "ip ") && strings.Contains(chain, "counter") {
		t.Errorf("the chain is not empty:\n%s", chain)
	}
	drop := func(address string) string { return "iptables -A " + adminChain + " -d " + address + " -j DROP" }
	if version, err := onMachine(p.Cluster, "iptables --version"); err != nil || !strings.Contains(version, "nf_tables") {
		drop = func(address string) string {
			return "nft add rule ip filter " + adminChain + " ip daddr " + address + " counter drop"
		}
	}
	for _, address := range []string{"203.0.113.1", "203.0.113.3", p.Pod("web").Status.PodIP} {
		run(drop(address))
	}
	blocked := func() {
		t.Helper()
		waitNoExternal(p.Cluster, "203.0.113.1")
		waitNoExternal(p.other, "203.0.113.1") // the chain must also apply to other projects
		waitExternal(p.Cluster, "203.0.113.2", "203.0.113.2")
		p.WaitFetch("client", p.url(8080), "I am web") // the chain must not block other pods
	}
	blocked()

	// The project's egress firewall must precede the chain, so the chain must not count any
	// packets.
	counted := func() bool {
		for line := range strings.Lines(run("nft list chain ip filter " + adminChain)) {
			if strings.Contains(line, "203.0.113.3 ") {
				return !strings.Contains(line, "packets 0 ")
			}
		}
		t.Fatal("the chain has no rule for 203.0.113.3")
		return false
	}
	p.Apply(firewall("default", "Deny 203.0.113.3/32", "Deny 203.0.113.4/32"))
	waitNoExternal(p.Cluster, "203.0.113.4", "203.0.113.3")
	if counted() {
		t.Error("packets that the egress firewall denies run through the chain")
	}
	p.OC("delete", "egressnetworkpolicy", "default")
	waitNoExternal(p.Cluster, "203.0.113.3")
	if !counted() {
		t.Error("packets to 203.0.113.3 do not run through the chain")
	}

	p.Kill("node")
	waitJump(p.Cluster)
	blocked()
	// The node must restore its rules within iptablesSyncPeriod.
	run("nft flush chain ip filter FORWARD")
	run("nft delete table ip slipway")
	waitJump(p.Cluster)
	blocked()
}

// TestPodsPassFirewallOfHost sets the chain policies that ufw sets.
func TestPodsPassFirewallOfHost(t *testing.T) {
	p := newProjects(t)
	newOutside(t, p.Cluster)
	run := func(command string) {
		t.Helper()
		if _, err := onMachine(p.Cluster, command); err != nil {
			t.Fatal(err)
		}
	}
	setPolicy := func(policy string) {
		t.Helper()
		for chain, hook := range map[string]string{"FORWARD": "forward", "INPUT": "input"} {
			run(fmt.Sprintf("nft 'add chain ip filter %s { type filter hook %s priority 0; policy %s; }'", chain, hook, policy))
		}
	}
	t.Cleanup(func() {
		setPolicy("accept")
		run("nft flush chain ip filter INPUT")
	})
	setPolicy("accept")
	run("nft add rule ip filter INPUT iifname != slipway0 accept")
	setPolicy("drop")
	// The node must add its rules within iptablesSyncPeriod.
	waitExternal(p.Cluster, "203.0.113.1", "203.0.113.1")
	p.WaitFetch("client", p.url(8080), "I am web")
	p.Exec("client", "nslookup", "kubernetes.default.svc.cluster.local")
	if address := p.OC("get", "service", "kubernetes", "-n", "default", "-o", "jsonpath={.spec.clusterIP}:443"); !reachesAPI(p.Cluster, address) {
		t.Errorf("the pod cannot connect to the API server at %s", address)
	}
}
